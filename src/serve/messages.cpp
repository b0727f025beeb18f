#include "serve/messages.h"

#include "base/format.h"

namespace penelope {

namespace {

constexpr size_t kMaxMessages = 4096, kMaxCalls = 1024;

// A string, or the text of a list of parts.
std::string text_in(const Fields & message, const std::string & name) {
    const Json * content = message.find(name);
    if (!content) {
        return "";
    }
    if (content->is_string()) {
        return content->get<std::string>();
    }
    if (!content->is_array()) {
        message.fail(name, "expected a string or a list of parts");
    }
    std::string text;
    for (const Json & one : *content) {
        const Fields      part(one, name + ".");
        const std::string type = part.text("type").value_or("text");
        if (type == "thinking" || type == "redacted_thinking" || type == "tool_use" || type == "tool_result") {
            continue; // earlier reasoning is not part of the prompt; calls and results are read apart
        }
        if (type != "text" && type != "input_text" && type != "output_text") {
            part.fail("type", "only text content is supported, got " + in_quotes(type));
        }
        text += part.text("text").value_or("");
    }
    return text;
}

std::string needed_text(const Fields & fields, const std::string & name) {
    const auto text = fields.text(name);
    if (!text) {
        fields.fail(name, "missing");
    }
    return *text;
}

// The "tool_calls" of Chat Completions.
void read_calls(const Fields & message, const std::string & path, ChatMessage & out) {
    const Json * list = message.find("tool_calls");
    if (!list) {
        return;
    }
    if (!list->is_array() || list->size() > kMaxCalls) {
        message.fail("tool_calls", "expected a list of at most " + std::to_string(kMaxCalls));
    }
    for (const Json & one : *list) {
        const Fields call(one, path + "tool_calls[" + std::to_string(out.tool_calls.size()) + "].");
        const auto   function = call.object("function");
        if (!function) {
            call.fail("function", "missing");
        }
        out.tool_calls.push_back(
            { call.text("id").value_or(""), needed_text(*function, "name"), function->text("arguments").value_or("") });
    }
}

// The blocks "tool_use" and "tool_result" of Anthropic's Messages. Results come as messages before this one.
void read_blocks(const Json & message, const std::string & path, ChatMessage & out,
                 std::vector<ChatMessage> & results) {
    const auto content = message.find("content");
    if (content == message.end() || !content->is_array()) {
        return;
    }
    for (size_t i = 0; i < content->size(); i++) {
        const Fields      block((*content)[i], path + "content[" + std::to_string(i) + "].");
        const std::string type = block.text("type").value_or("text");
        if (type == "tool_use") {
            const Json * input = block.find("input");
            out.tool_calls.push_back(
                { needed_text(block, "id"), needed_text(block, "name"), input ? dump_json(*input) : "{}" });
        } else if (type == "tool_result") {
            results.push_back({ "tool", text_in(block, "content") });
            results.back().tool_call_id = needed_text(block, "tool_use_id");
        }
    }
}

// The items "function_call" and "function_call_output" of Responses. A call belongs to the answer before it.
bool read_item(const Fields & item, std::vector<ChatMessage> & messages) {
    const std::string type = item.text("type").value_or("");
    if (type == "reasoning") {
        return true;
    }
    if (type == "function_call") {
        if (messages.empty() || messages.back().role != "assistant") {
            messages.push_back({ "assistant", "" });
        }
        messages.back().tool_calls.push_back(
            { needed_text(item, "call_id"), needed_text(item, "name"), item.text("arguments").value_or("") });
        return true;
    }
    if (type == "function_call_output") {
        messages.push_back({ "tool", text_in(item, "output") });
        messages.back().tool_call_id = needed_text(item, "call_id");
        return true;
    }
    return false;
}

// Results name their call; templates and models want the function.
void name_results(std::vector<ChatMessage> & messages) {
    std::map<std::string, std::string> functions; // by id of the call
    for (ChatMessage & message : messages) {
        for (const ToolCall & call : message.tool_calls) {
            functions[call.id] = call.name;
        }
        if (const auto found = functions.find(message.tool_call_id);
            message.role == "tool" && found != functions.end()) {
            message.name = found->second;
        }
    }
}

} // namespace

std::vector<ChatMessage> read_messages(const Fields & fields, const std::string & name) {
    const Json * list = fields.find(name);
    if (!list || !list->is_array() || list->empty()) {
        fields.fail(name, "expected a list of messages");
    }
    if (list->size() > kMaxMessages) {
        fields.fail(name, "more than " + std::to_string(kMaxMessages) + " messages");
    }
    std::vector<ChatMessage> messages;
    for (size_t i = 0; i < list->size(); i++) {
        const std::string path = name + "[" + std::to_string(i) + "].";
        const Fields      message((*list)[i], path);
        if (read_item(message, messages)) {
            continue;
        }
        std::string role = message.text("role").value_or("");
        role             = role == "developer" ? "system" : role;
        if (role != "system" && role != "user" && role != "assistant" && role != "tool") {
            message.fail("role", "expected system, user, assistant or tool");
        }
        ChatMessage one{ role, text_in(message, "content"), message.text("reasoning_content").value_or("") };
        std::vector<ChatMessage> results;
        read_calls(message, path, one);
        read_blocks((*list)[i], path, one, results);
        one.tool_call_id        = message.text("tool_call_id").value_or("");
        one.name                = role == "tool" ? message.text("name").value_or("") : "";
        const bool only_results = !results.empty() && one.content.empty() && one.tool_calls.empty();
        messages.insert(messages.end(), results.begin(), results.end());
        if (!only_results) {
            messages.push_back(std::move(one));
        }
    }
    if (messages.empty()) {
        fields.fail(name, "expected a list of messages");
    }
    name_results(messages);
    return messages;
}

} // namespace penelope
