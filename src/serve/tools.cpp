#include "serve/tools.h"

#include "base/format.h"
#include "grammar/automaton.h"
#include "tools/tool_set.h"

#include <algorithm>
#include <set>

namespace penelope {

namespace {

constexpr size_t kMaxTools = 128, kMaxNameLength = 128, kMaxToolBytes = 262144;

enum class Use { none, automatic, required };

struct ToolChoice {
    Use                      use = Use::automatic;
    std::vector<std::string> functions;             // those that may be called
    bool                     named         = false; // one function was asked for
    bool                     only_one_call = false;
};

// Where each API has the parts of a tool.
struct ToolFields {
    const char * function;   // object that holds the others, "" for the tool itself
    const char * parameters; // the schema
    const char * type;       // expected value of "type"
    bool         type_needed;
};

ToolFields fields_of(ToolApi api) {
    switch (api) {
        case ToolApi::chat: return { "function", "parameters", "function", true };
        case ToolApi::responses: return { "", "parameters", "function", true };
        case ToolApi::messages: return { "", "input_schema", "custom", false };
    }
    return {};
}

void check_name(const Fields & fields, const std::string & name) {
    const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '.';
    });
    if (name.empty() || name.size() > kMaxNameLength || !plain) {
        fields.fail("name", "expected 1 to " + std::to_string(kMaxNameLength) + " letters, digits, _, - or .");
    }
}

Tool read_tool(const Json & json, const OrderedJson & ordered, const std::string & path, const ToolFields & form) {
    const Fields tool(json, path);
    const auto   type = tool.text("type");
    if (type ? *type != form.type : form.type_needed) {
        tool.fail("type", "expected " + std::string(form.type) + (type ? ", got " + in_quotes(*type) : ""));
    }
    const bool inside = *form.function != 0;
    const auto object = inside ? tool.object(form.function) : std::optional<Fields>(tool);
    if (!object) {
        tool.fail(form.function, "missing");
    }
    Tool out;
    out.name = object->text("name").value_or("");
    check_name(*object, out.name);
    out.description           = object->text("description").value_or("");
    out.strict                = object->boolean("strict").value_or(false);
    const OrderedJson & place = inside ? ordered.at(form.function) : ordered;
    out.parameters            = place.value(form.parameters, OrderedJson());
    if (out.parameters.is_null()) {
        out.parameters = { { "type", "object" }, { "properties", OrderedJson::object() } };
    }
    if (!out.parameters.is_object()) {
        object->fail(form.parameters, "expected a JSON Schema object");
    }
    if (!out.parameters.contains("type") && !out.parameters.contains("$ref")) {
        out.parameters["type"] = "object";
    }
    if (out.parameters.value("type", OrderedJson("object")) != "object") {
        object->fail(form.parameters, "type: expected object");
    }
    return out;
}

std::vector<Tool> read_tool_list(const Fields & fields, const std::string & body, const ToolFields & form) {
    const Json * list = fields.find("tools");
    if (!list || list->empty()) {
        return {};
    }
    if (!list->is_array()) {
        fields.fail("tools", "expected a list");
    }
    if (list->size() > kMaxTools) {
        fields.fail("tools", "more than " + std::to_string(kMaxTools) + " tools");
    }
    if (dump_json(*list).size() > kMaxToolBytes) {
        fields.fail("tools", "larger than " + std::to_string(kMaxToolBytes / 1024) + " KiB");
    }
    OrderedJson ordered;
    try {
        ordered = parse_ordered_json(body, "body").at("tools");
    } catch (const Error & error) {
        throw RequestError(400, error.message());
    }
    std::vector<Tool>     tools;
    std::set<std::string> names;
    for (size_t i = 0; i < list->size(); i++) {
        const std::string path = "tools[" + std::to_string(i) + "].";
        tools.push_back(read_tool((*list)[i], ordered[i], path, form));
        if (!names.insert(tools.back().name).second) {
            throw RequestError(400, path + "name: " + in_quotes(tools.back().name) + " comes twice", path + "name");
        }
    }
    return tools;
}

[[noreturn]] void fail_choice(const Fields & fields, ToolApi api) {
    fields.fail("tool_choice", api == ToolApi::messages ? "expected an object of type auto, any, tool or none"
                                                        : "expected none, auto, required, or an object that names a "
                                                          "function");
}

Use use_of(const Fields & fields, ToolApi api, const std::string & word) {
    if (word == "none") {
        return Use::none;
    }
    if (word == "auto") {
        return Use::automatic;
    }
    if (word == (api == ToolApi::messages ? "any" : "required")) {
        return Use::required;
    }
    fail_choice(fields, api);
}

// {"type": "allowed_tools", "mode", "tools"}, in an object of the same name in Chat Completions.
void read_allowed(const Fields & fields, const Fields & choice, ToolApi api, ToolChoice & out) {
    const auto   inside = choice.object("allowed_tools");
    const Fields where  = inside ? *inside : choice;
    const Json * list   = where.find("tools");
    if (!list || !list->is_array() || list->empty()) {
        where.fail("tools", "expected a list of tools");
    }
    out.use = use_of(fields, api, where.text("mode").value_or("auto"));
    out.functions.clear();
    for (const Json & one : *list) {
        const Fields tool(one, "tool_choice.tools.");
        const auto   function = tool.object("function");
        out.functions.push_back((function ? *function : tool).text("name").value_or(""));
    }
}

ToolChoice read_choice(const Fields & fields, ToolApi api, const std::vector<Tool> & tools) {
    ToolChoice out;
    for (const Tool & tool : tools) {
        out.functions.push_back(tool.name);
    }
    const Json * value = fields.find("tool_choice");
    if (!value) {
        return out;
    }
    if (value->is_string() && api != ToolApi::messages) {
        out.use = use_of(fields, api, value->get<std::string>());
        return out;
    }
    if (!value->is_object()) {
        fail_choice(fields, api);
    }
    const Fields      choice = *fields.object("tool_choice");
    const std::string type   = choice.text("type").value_or("");
    out.only_one_call        = choice.boolean("disable_parallel_tool_use").value_or(false);
    if (type == (api == ToolApi::messages ? "tool" : "function")) {
        const auto function = choice.object("function");
        out.use             = Use::required;
        out.named           = true;
        out.functions       = { (function ? *function : choice).text("name").value_or("") };
    } else if (type == "allowed_tools" && api != ToolApi::messages) {
        read_allowed(fields, choice, api, out);
    } else if (api == ToolApi::messages) {
        out.use = use_of(fields, api, type);
    } else {
        fail_choice(fields, api);
    }
    for (const std::string & name : out.functions) {
        if (!is_tool(tools, name)) {
            fields.fail("tool_choice", "no tool of the name " + in_quotes(name));
        }
    }
    return out;
}

} // namespace

void read_tools(const Service & service, GenerationRequest & gen_request, const Fields & fields,
                const std::string & body, ToolApi api) {
    std::vector<Tool> tools  = read_tool_list(fields, body, fields_of(api));
    const ToolChoice  choice = read_choice(fields, api, tools);
    gen_request.tools        = fields.has("tools") ? *fields.find("tools") : Json::array();
    gen_request.tool_choice  = fields.has("tool_choice") ? *fields.find("tool_choice") : Json("auto");
    const auto several       = fields.boolean("parallel_tool_calls");
    if (choice.use == Use::required && tools.empty()) {
        fields.fail("tool_choice", "there are no tools");
    }
    if (tools.empty() || choice.use == Use::none) {
        return;
    }
    if (service.engine().sidecar() != nullptr) {
        // Its sidecar has taught the model to answer one question in its own format, not to call functions. Where a
        // call is only allowed, an answer in words is a right one; where it is required, it would be a wrong one.
        const std::string why = "this model has a sidecar, tools are not used";
        if (choice.use == Use::required) {
            fields.fail("tool_choice", why);
        }
        gen_request.warnings.push_back("tools: " + why);
        return;
    }
    if (!service.tool_dialect) {
        return; // set_chat_prompt says why there is no chat
    }
    // Where calls are required a weak model would go on calling: one, unless more are asked for.
    const bool parallel = !choice.only_one_call && !choice.named && several.value_or(choice.use != Use::required);
    tools.erase(std::remove_if(tools.begin(), tools.end(),
                               [&](const Tool & tool) {
                                   return std::find(choice.functions.begin(), choice.functions.end(), tool.name) ==
                                          choice.functions.end();
                               }),
                tools.end());
    GenerateOptions & generate = gen_request.job->generate;
    try {
        generate.tools = make_tool_set(std::move(tools), *service.tool_dialect->format, parallel, gen_request.warnings);
        if (choice.use == Use::required || generate.grammar) {
            const Grammar * text = choice.use == Use::required ? nullptr : generate.grammar.get();
            const auto      most = parallel ? std::nullopt : std::optional<size_t>(1);
            auto            grammar =
                std::make_shared<const Grammar>(tool_call_grammar(*generate.tools, choice.functions, most, text));
            const Automaton possible(grammar); // throws when even the first state is too large
            generate.grammar = std::move(grammar);
        }
    } catch (const Error & error) {
        throw RequestError(400, "tools: " + error.message(), "tools");
    }
}

} // namespace penelope
