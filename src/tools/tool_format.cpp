#include "tools/tool_format.h"

#include "base/error.h"
#include "tools/argument_grammar.h"

#include <algorithm>

namespace penelope {

const std::vector<ToolFormat> & tool_formats() {
    static const std::vector<ToolFormat> formats = {
        // Qwen3.5, Qwen3-Coder
        { "qwen-xml",
          "<tool_call>\n<function=",
          { { "<tool_call>", "</tool_call>" } },
          xml_call_body,
          "",
          "<tool_call>\n<function=",
          ">",
          xml_arguments,
          "\n</tool_call>",
          "\n",
          "",
          nullptr,
          { "<tool_call>", "</tool_call>" } },
        // Qwen2.5, Qwen3, Hermes, Granite 4, SmolLM3
        { "hermes",
          "<tool_call>",
          { { "<tool_call>", "</tool_call>" } },
          json_call_body,
          "",
          "<tool_call>\n{\"name\": \"",
          "\", \"arguments\": ",
          json_arguments,
          "\n</tool_call>",
          "\n",
          "",
          loose_json_arguments,
          { "<tool_call>", "</tool_call>" } },
        // Granite 3, Phi-4-mini
        { "granite",
          "<|tool_call|>",
          { { "<|tool_call|>", "<|/tool_call|>" } },
          json_call_body,
          "<|tool_call|>[",
          "{\"name\": \"",
          "\", \"arguments\": ",
          json_arguments,
          "",
          ", ",
          "]",
          loose_json_arguments,
          { "<|tool_call|>", "<|/tool_call|>" } },
        { "mistral",
          "[TOOL_CALLS][",
          { { "[TOOL_CALLS]", "" } },
          json_call_body,
          "[TOOL_CALLS][",
          "{\"name\": \"",
          "\", \"arguments\": ",
          json_arguments,
          "",
          ", ",
          "]",
          loose_json_arguments,
          { "[TOOL_CALLS]" } },
        // Gemma 4
        { "gemma",
          "<|tool_call>call:",
          { { "<|tool_call>", "<tool_call|>" } },
          gemma_call_body,
          "",
          "<|tool_call>call:",
          "",
          gemma_arguments,
          "<tool_call|>",
          "",
          "",
          nullptr,
          { "<|tool_call>", "<tool_call|>", "<|\"|>" } },
        // Llama 3.1, 3.2, 3.3
        { "llama",
          "{\"name\": \"fXzF\", \"parameters\": ",
          { { "", "" }, { "<|python_tag|>", "" } },
          json_call_body,
          "",
          "{\"name\": \"",
          "\", \"parameters\": ",
          json_arguments,
          "",
          nullptr,
          "",
          loose_json_arguments,
          { "<|python_tag|>" } },
        // Gemma 2 and 3, Phi-3, SmolLM2 and all others whose template takes no tools: described in a message, in the
        // form Google documents for Gemma. Such models like to put JSON into a code block.
        { "described",
          nullptr,
          { { "", "" },
            { "```json", "```" },
            { "```tool_code", "```" },
            { "```tool_call", "```" },
            { "<tool_call>", "</tool_call>" } },
          json_call_body,
          "",
          "{\"name\": \"",
          "\", \"parameters\": ",
          json_arguments,
          "",
          nullptr,
          "",
          loose_json_arguments,
          {} },
    };
    return formats;
}

namespace {

constexpr const char *kProbeQuestion = "qXzQ", *kProbeValue = "vXzV";

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// "" where the template refuses.
std::string try_render(const ChatTemplate & chat, const std::vector<ChatMessage> & messages) {
    try {
        return chat.render(messages);
    } catch (const Error &) {
        return "";
    }
}

OrderedJson arguments_json(const ToolCall & call) {
    try {
        return parse_ordered_json(call.arguments, "arguments");
    } catch (const Error &) {
        return call.arguments;
    }
}

// Earlier calls as the text a model of this format writes.
std::string calls_text(const ToolFormat & format, const std::vector<ToolCall> & calls) {
    std::string text = format.list_begin;
    for (const ToolCall & call : calls) {
        text += &call == &calls.front() ? "" : format.separator ? format.separator : "\n";
        const std::string arguments = call.arguments.empty() ? "{}" : dump_json(arguments_json(call));
        text += format.call_begin + call.name + format.call_arguments + arguments + "}" + format.call_end;
    }
    return text + format.list_end;
}

std::string description(const std::vector<Tool> & tools) {
    std::string text = "You can call these functions, each described by a JSON object:\n";
    for (const Tool & tool : tools) {
        text += dump_json(tool.json()["function"]) + "\n";
    }
    return text + "To call a function, answer with nothing but {\"name\": function name, \"parameters\": object of the "
                  "arguments}. Answer in words if no function is needed.";
}

} // namespace

ToolDialect find_tool_dialect(const ChatTemplate & chat) {
    const Tool        probe{ probe_function,
                      "d",
                      { { "type", "object" }, { "properties", { { "kXzK", { { "type", "string" } } } } } } };
    const ChatMessage question{ "user", kProbeQuestion };
    ChatMessage       call{ "assistant", "" }, result{ "tool", kProbeValue };
    call.tool_calls.push_back({ "call00000", probe_function, OrderedJson{ { "kXzK", kProbeValue } }.dump() });
    result.tool_call_id = "call00000";
    ToolDialect dialect;
    dialect.takes_system = contains(try_render(chat, { { "system", kProbeValue }, question }), kProbeValue);
    for (const ToolPlace place : { ToolPlace::tools, ToolPlace::xml_tools, ToolPlace::system_message }) {
        const ChatTemplate with    = chat.with_tools(OrderedJson::array({ probe.json() }), place);
        const std::string  offered = try_render(with, { question });
        if (!contains(offered, probe_function)) {
            continue;
        }
        const std::string called = try_render(with, { question, call, result });
        for (const ToolFormat & format : tool_formats()) {
            if (format.template_mark != nullptr &&
                (contains(called, format.template_mark) || contains(offered, format.template_mark))) {
                dialect.format = &format;
                dialect.place  = place;
                // Once in the description, once in the call; its value in the call and in the result.
                const size_t first = called.find(kProbeValue);
                dialect.writes_calls =
                    first != std::string::npos && called.find(kProbeValue, first + 1) != std::string::npos;
                return dialect;
            }
        }
    }
    dialect.format    = &tool_formats().back();
    dialect.described = true;
    return dialect;
}

std::vector<ChatMessage> messages_with_tools(const ToolDialect & dialect, std::vector<ChatMessage> messages,
                                             const std::vector<Tool> & tools) {
    std::vector<ChatMessage> out;
    bool                     results = false; // the last message holds results of tools
    for (ChatMessage & message : messages) {
        if (!dialect.writes_calls && message.role == "assistant" && !message.tool_calls.empty()) {
            message.content += (message.content.empty() ? "" : "\n") + calls_text(*dialect.format, message.tool_calls);
            message.tool_calls.clear();
        }
        const bool is_result = dialect.described && message.role == "tool";
        if (is_result) {
            const std::string text =
                "Result of " + (message.name.empty() ? "the function" : message.name) + ": " + message.content;
            if (results) {
                out.back().content += "\n" + text;
            } else {
                out.push_back({ "user", text });
            }
        } else {
            out.push_back(std::move(message));
        }
        results = is_result;
    }
    if (dialect.described && !tools.empty()) {
        const auto place = std::find_if(out.begin(), out.end(), [&](const ChatMessage & message) {
            return message.role == (dialect.takes_system ? "system" : "user");
        });
        if (place != out.end()) {
            place->content = dialect.takes_system ? place->content + "\n\n" + description(tools)
                                                  : description(tools) + "\n\n" + place->content;
        } else {
            out.insert(out.begin(), { dialect.takes_system ? "system" : "user", description(tools) });
        }
    }
    return out;
}

} // namespace penelope
