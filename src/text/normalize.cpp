#include "text/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

namespace penelope {

namespace {

bool is_ascending_by_class(const utf8proc_int32_t & a, const utf8proc_int32_t & b) {
    return utf8proc_get_property(a)->combining_class < utf8proc_get_property(b)->combining_class;
}

// Puts every run of combining marks into canonical order. utf8proc_decompose() does the same by exchanging neighbours,
// which takes quadratic time in the length of a run.
void order_marks(std::vector<utf8proc_int32_t> & text) {
    const auto is_starter = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class == 0; };
    for (auto begin = text.begin(); begin != text.end();) {
        begin          = std::find_if_not(begin, text.end(), is_starter);
        const auto end = std::find_if(begin, text.end(), is_starter);
        std::stable_sort(begin, end, is_ascending_by_class);
        begin = end;
    }
}

// Empty where the text is not UTF-8.
std::vector<utf8proc_int32_t> decompose(std::string_view text, utf8proc_option_t options) {
    std::vector<utf8proc_int32_t> out;
    out.reserve(text.size());
    for (size_t pos = 0; pos < text.size();) {
        utf8proc_int32_t       character = 0;
        const utf8proc_ssize_t n_bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t *>(text.data()) + pos,
                                                          utf8proc_ssize_t(text.size() - pos), &character);
        if (n_bytes <= 0) {
            return {};
        }
        utf8proc_int32_t       parts[32]; // the longest decomposition has 4, folded 18
        const utf8proc_ssize_t n_parts = utf8proc_decompose_char(character, parts, 32, options, nullptr);
        if (n_parts < 0 || n_parts > 32) {
            return {};
        }
        out.insert(out.end(), parts, parts + n_parts);
        pos += size_t(n_bytes);
    }
    return out;
}

std::string map_text(std::string_view text, int flags) {
    const auto                    options = utf8proc_option_t(flags);
    std::vector<utf8proc_int32_t> buffer  = decompose(text, options);
    order_marks(buffer);
    const auto n = utf8proc_ssize_t(buffer.size());
    buffer.push_back(0); // utf8proc_reencode() writes the bytes and a zero into the same memory
    const utf8proc_ssize_t n_bytes = utf8proc_reencode(buffer.data(), n, options);
    return n_bytes <= 0 ? std::string(text)
                        : std::string(reinterpret_cast<const char *>(buffer.data()), size_t(n_bytes));
}

} // namespace

bool is_surely_composed(std::string_view text) {
    // U+0300, the first character that NFC changes or that changes others, begins with the byte 0xCC.
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0xCC; });
}

std::string normalize_unicode(std::string_view text) {
    return map_text(text, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
}

std::string fold_case(std::string_view text) {
    return map_text(text, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD);
}

} // namespace penelope
