// Unicode normalization by utf8proc, in linear time but for sorting runs of combining marks.
#pragma once

#include <string>
#include <string_view>

namespace penelope {

// NFC. Text that is not valid UTF-8 is returned unchanged.
// Hugging Face's tables end before Unicode 10: beside marks that came later (U+09FE, U+0D3B, U+0D3C) it orders others
// differently.
std::string normalize_unicode(std::string_view text);

// True: the text is in NFC. False: only normalize_unicode() can tell. A quick test for ASCII and Latin-1.
bool is_surely_composed(std::string_view text);

// NFC with case folding: texts that differ only in upper and lower case become equal.
std::string fold_case(std::string_view text);

} // namespace penelope
