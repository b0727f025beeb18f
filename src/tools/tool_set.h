// The tools of a request with what an answer needs of them: the format of the calls and the grammars they are held to.
#pragma once

#include "tools/tool_format.h"

#include <map>

namespace penelope {

struct ToolSet {
    std::vector<Tool>  tools;
    const ToolFormat * format   = nullptr;
    bool               parallel = true; // an answer may call several times
    // The rest of a call from its arguments on, by function: first as its schema says, then in any spelling. A call
    // that has begun is held to the first that fits.
    std::map<std::string, std::vector<std::shared_ptr<const Grammar>>> rests;
};

// Makes the grammars. A schema that cannot be followed throws Error(unsupported) if the tool is strict, else its
// arguments may be any object and `warnings` says so.
std::shared_ptr<const ToolSet> make_tool_set(std::vector<Tool> tools, const ToolFormat & format, bool parallel,
                                             std::vector<std::string> & warnings);

// Answers that are calls of these functions and nothing else. most: number of calls. text: answers without calls that
// are allowed beside them, null for none.
Grammar tool_call_grammar(const ToolSet & set, const std::vector<std::string> & functions, std::optional<size_t> most,
                          const Grammar * text);

} // namespace penelope
