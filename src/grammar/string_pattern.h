// Translates the `pattern` of a JSON Schema string, a regular expression, into a grammar for the JSON string. Without
// lookaround, back references and \b. Unless anchored by ^ and $, any text may precede and follow.
#pragma once

#include "grammar/json_text.h"

namespace penelope {

// One string including its quotes. where: prefix of messages. Throws Error(format) or Error(unsupported).
Symbol pattern_string(GrammarBuilder & builder, JsonText & json, const std::string & pattern,
                      const std::string & where);

} // namespace penelope
