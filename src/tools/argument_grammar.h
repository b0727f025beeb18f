// Grammars of a call's arguments, in the text form of each format.
#pragma once

#include "grammar/grammar.h"
#include "tools/tool.h"

namespace penelope {

// Each throws Error(unsupported) for a schema that cannot be followed.
Sequence json_arguments(GrammarBuilder & builder, const Tool & tool); // {...}}
Sequence xml_arguments(GrammarBuilder & builder, const Tool & tool); // <parameter=K>\nV\n</parameter>\n ... </function>
Sequence gemma_arguments(GrammarBuilder & builder, const Tool & tool); // {K:V,...}

extern const char * const loose_json_arguments; // GBNF of json_arguments with any object and any white space

} // namespace penelope
