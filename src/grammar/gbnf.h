// Grammars as llama.cpp's users write them: name ::= "literal" [a-z] . other-rule ( a | b ) with * + ? {2} {2,} {2,5}
// after each, # before comments. The rule `root` is the whole text.
#pragma once

#include "grammar/grammar.h"

namespace penelope {

// Throws Error(format) with line and column for what is no grammar, Error(unsupported) for one that cannot be followed.
Grammar parse_gbnf(std::string_view text);

} // namespace penelope
