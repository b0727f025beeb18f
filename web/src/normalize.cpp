// src/text/normalize.h for browsers, where utf8proc is not: ASCII alone, which is in NFC as it is.
#include "text/normalize.h"

#include "base/error.h"
#include "base/format.h"

#include <algorithm>

namespace penelope {

namespace {

void require_ascii(std::string_view text) {
    if (!is_surely_composed(text)) {
        throw Error(ErrorKind::unsupported, "Unicode normalization: this build has none, found " + in_quotes(text),
                    "such texts need a build with utf8proc");
    }
}

} // namespace

bool is_surely_composed(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string normalize_unicode(std::string_view text) {
    require_ascii(text);
    return std::string(text);
}

std::string fold_case(std::string_view text) {
    require_ascii(text);
    return to_lower(text);
}

} // namespace penelope
