#include "target.h"

namespace penelope::fuzz {

const test::TempDir & folder() {
    static const test::TempDir instance;
    return instance;
}

std::string as_file(const std::string & name, const std::string & bytes) {
    return folder().write(name, bytes);
}

} // namespace penelope::fuzz
