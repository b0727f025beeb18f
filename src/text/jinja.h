// Runs a chat template: llama.cpp's Jinja engine behind one function. A template is text from a file of anybody's:
// time, memory and stack it takes are bounded (jinja_bounds.h).
#pragma once

#include "base/json.h"
#include "text/text_range.h"

#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace penelope {

struct JinjaInput {
    OrderedJson own;   // variables without text of people: bos_token, add_generation_prompt, ...
    OrderedJson given; // messages, tools, ...: every string in them but the value of a "role" was written by somebody
    // Breaks up the control tokens in a string of `given` by putting the mark inside each.
    std::function<std::string(std::string text, const std::string & mark)> guard;
    std::time_t                                                            now = std::time(nullptr);
};

struct JinjaText {
    std::string text;
    // Where the text is the template's own. Only a control token inside one range is a control token: text that people
    // wrote is left out, and where the engine loses track of it (join, tojson, ...) the mark of `guard` ends a range.
    std::vector<TextRange> own;
};

// Throws Error(unsupported) with the template's or the engine's message.
JinjaText run_jinja(const std::string & source, const JinjaInput & input);

} // namespace penelope
