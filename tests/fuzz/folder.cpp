#include "base/error.h"
#include "target.h"

#include <exception>
#include <filesystem>

namespace penelope::fuzz {

namespace fs = std::filesystem;

const test::TempDir & folder() {
    static const test::TempDir instance;
    return instance;
}

std::string as_file(const std::string & name, const std::string & bytes) {
    return folder().write(name, bytes);
}

void try_each(const std::vector<std::function<void()>> & steps) {
    std::exception_ptr first;
    for (const auto & step : steps) {
        try {
            step();
        } catch (const Error &) {
            first = first ? first : std::current_exception();
        }
    }
    if (first) {
        std::rethrow_exception(first);
    }
}

std::string Directories::with(const std::string & bytes) const {
    const size_t      which = static_cast<unsigned char>(bytes.at(0)) % (paths.size() * names.size());
    const std::string dir   = folder().file("input");
    fs::remove_all(dir);
    fs::copy(paths[which / names.size()], dir, fs::copy_options::recursive);
    as_file("input/" + names[which % names.size()], bytes.substr(1));
    return dir;
}

std::vector<std::string> Directories::files() const {
    std::vector<std::string> all;
    for (size_t i = 0; i < paths.size() * names.size(); i++) {
        const fs::path path = fs::path(paths[i / names.size()]) / names[i % names.size()];
        if (fs::exists(path)) {
            all.push_back(char(i) + test::read_bytes(path));
        }
    }
    return all;
}

} // namespace penelope::fuzz
