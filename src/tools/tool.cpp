#include "tools/tool.h"

namespace penelope {

OrderedJson Tool::json() const {
    OrderedJson function{ { "name", name } };
    function["description"] = description;
    function["parameters"]  = parameters;
    return { { "type", "function" }, { "function", std::move(function) } };
}

} // namespace penelope
