// Unicode forms in which two spellings of one text agree, by utf8proc.
#pragma once

#include <string>

namespace penelope {

// Composed (NFC). Bytes that are not UTF-8 leave the text as it is.
std::string normalize_unicode(const std::string & text);

// The same without difference between capital and small letters.
std::string fold_case(const std::string & text);

} // namespace penelope
