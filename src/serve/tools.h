// The tools of a request and what it says about their use.
#pragma once

#include "serve/generation_request.h"

namespace penelope {

enum class ToolApi { chat, responses, messages };

// Reads "tools", "tool_choice" and "parallel_tool_calls" in the form of this API. Comes after read_constraint: answers
// are then held to the calls, the response format or both. `body` is the raw request, because Fields does not keep the
// order of properties. Throws RequestError naming the field.
void read_tools(const Service & service, GenerationRequest & gen_request, const Fields & fields,
                const std::string & body, ToolApi api);

} // namespace penelope
