// A function that a client offers to the model.
#pragma once

#include "base/json.h"

#include <string>

namespace penelope {

struct Tool {
    std::string name, description;
    OrderedJson parameters;     // JSON Schema of its arguments, an object
    bool        strict = false; // the arguments must be held to the schema, or the request fails

    // As OpenAI describes it, which is what chat templates take: {"type": "function", "function": {...}}.
    OrderedJson json() const;
};

} // namespace penelope
