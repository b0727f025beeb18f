// The `pattern` of a string in JSON Schema: a regular expression without look-around, references to groups and \b, as
// the content of a string in JSON. Unless ^ and $ hold it, anything may stand before and after.
#pragma once

#include "grammar/json_text.h"

namespace penelope {

// One string with its quotes. where: begins the messages. Throws Error(format) or Error(unsupported).
Symbol pattern_string(GrammarBuilder & builder, JsonText & json, const std::string & pattern,
                      const std::string & where);

} // namespace penelope
