// The identity of a question: its normalized text and the SHA-256 of that.
// Input: question text; output: the form in which two spellings of one question agree, and its hash.
#pragma once

#include "base/trim.h"

#include <string>

namespace penelope {

// Lower-cased (ASCII), whitespace collapsed to single spaces, trimmed.
std::string normalize_text(const std::string & question);

// The same, and no spaces next to brackets.
std::string normalize_bracketed(const std::string & question);

} // namespace penelope
