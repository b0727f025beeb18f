// Parser for GBNF, llama.cpp's grammar format: name ::= "literal" [a-z] . other-rule ( a | b ), each followed by * + ?
// {2} {2,} {2,5}; # starts a comment. The rule `root` is the whole text.
#pragma once

#include "grammar/grammar.h"

namespace penelope {

// Throws Error(format) with line and column for a syntax error, Error(unsupported) for a grammar that cannot be
// matched.
Grammar parse_gbnf(std::string_view text);

} // namespace penelope
