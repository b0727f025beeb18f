#include "text/normalize.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

namespace penelope {

namespace {

std::string map_text(const std::string & text, int options) {
    utf8proc_uint8_t *     mapped = nullptr;
    const utf8proc_ssize_t n      = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(text.data()),
                                                 utf8proc_ssize_t(text.size()), &mapped, utf8proc_option_t(options));
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(mapped, std::free);
    return n < 0 ? text : std::string(reinterpret_cast<const char *>(mapped), size_t(n));
}

} // namespace

std::string normalize_unicode(const std::string & text) {
    return map_text(text, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
}

std::string fold_case(const std::string & text) {
    return map_text(text, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD);
}

} // namespace penelope
