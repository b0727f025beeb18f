// A call of a function that an answer asks the client for.
#pragma once

#include <string>

namespace penelope {

struct ToolCall {
    std::string id; // given by the server; the client's result names it. "": none yet
    std::string name;
    std::string arguments;       // text of a JSON object
    bool        complete = true; // false: the answer was cut off in the middle of it
};

} // namespace penelope
