#include "text/chat_template.h"

#include "base/error.h"
#include "base/format.h"
#include "text/utf8.h"

#include <algorithm>

namespace penelope {

namespace {

// What the template is tried on: nothing that templates look for.
const std::string question = "qXzQ", answer = "aXzA", thought = "tXzT";

void check(const std::vector<ChatMessage> & messages) {
    if (messages.empty()) {
        throw Error(ErrorKind::usage, "conversation: no messages");
    }
    for (const ChatMessage & message : messages) {
        if (message.role != "system" && message.role != "user" && message.role != "assistant" &&
            message.role != "tool") {
            throw Error(ErrorKind::usage, "message of role " + in_quotes(message.role) + ": unknown role",
                        "roles are system, user, assistant and tool");
        }
    }
}

[[noreturn]] void refuse(const std::string & why) {
    throw Error(ErrorKind::unsupported, "chat template: " + why,
                "name one with --chat-template, or use --raw to write the prompt yourself");
}

bool starts_with(std::string_view text, std::string_view begin) {
    return text.substr(0, begin.size()) == begin;
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// As OpenAI has it, but for the arguments of calls: templates want objects.
OrderedJson message_json(const ChatMessage & message, bool content_in_parts) {
    OrderedJson one{ { "role", message.role }, { "content", message.content } };
    if (content_in_parts) {
        one["content"] = OrderedJson::array({ OrderedJson{ { "type", "text" }, { "text", message.content } } });
    }
    if (!message.reasoning.empty()) {
        one["reasoning_content"] = message.reasoning;
    }
    for (const ToolCall & call : message.tool_calls) {
        OrderedJson arguments = call.arguments;
        try {
            arguments =
                call.arguments.empty() ? OrderedJson::object() : parse_ordered_json(call.arguments, "arguments");
        } catch (const Error &) { // cut off: the template gets it as text
        }
        one["tool_calls"].push_back(
            { { "id", call.id },
              { "type", "function" },
              { "function", { { "name", call.name }, { "arguments", std::move(arguments) } } } });
    }
    if (message.role == "tool") {
        one["tool_call_id"] = message.tool_call_id;
        if (!message.name.empty()) {
            one["name"] = message.name;
        }
    }
    return one;
}

// Puts the mark behind the first character of every control token, until none is left.
std::string guard(const Tokenizer & tokenizer, std::string text, const std::string & mark) {
    for (bool found = true; found;) {
        found             = false;
        const auto tokens = tokenizer.find_control_tokens(text);
        for (auto token = tokens.rbegin(); token != tokens.rend(); ++token) {
            const size_t first = next_utf8_unit(text, token->begin).size;
            if (first < token->size) { // one of a single character stays: a template marks where it comes from
                text.insert(token->begin + first, mark);
                found = true;
            }
        }
    }
    return text;
}

} // namespace

ChatTemplate::ChatTemplate(Tokenizer tokenizer, ChatSettings settings)
    : ChatTemplate(tokenizer, tokenizer.chat_template(), std::move(settings)) {}

ChatTemplate::ChatTemplate(Tokenizer tokenizer, Thinking thinking)
    : ChatTemplate(std::move(tokenizer), [&] {
          ChatSettings settings;
          settings.thinking = thinking;
          return settings;
      }()) {}

ChatTemplate::ChatTemplate(Tokenizer tokenizer, std::string source, ChatSettings settings)
    : tokenizer_(std::move(tokenizer)), source_(std::move(source)), settings_(std::move(settings)) {
    if (source_.empty()) {
        refuse("the model has none");
    }
    choose_form();
    choose_thinking();
    observe();
}

ChatTemplate ChatTemplate::with(ChatSettings settings) const {
    return ChatTemplate(tokenizer_, source_, std::move(settings));
}

ChatTemplate ChatTemplate::with_tools(OrderedJson tools, ToolPlace place) const {
    ChatTemplate other         = *this;
    other.settings_.tools      = std::move(tools);
    other.settings_.tool_place = place;
    return other;
}

JinjaText ChatTemplate::run(const std::vector<ChatMessage> & messages, bool add_generation_prompt) const {
    JinjaInput input;
    // As transformers calls templates: what is not given is none, special tokens are there if the vocabulary has them.
    input.own = OrderedJson{ { "add_generation_prompt", add_generation_prompt }, { "documents", nullptr } };
    const std::pair<const char *, std::optional<int32_t>> tokens[] = { { "bos_token", tokenizer_.bos() },
                                                                       { "eos_token", tokenizer_.eos() },
                                                                       { "pad_token", tokenizer_.padding() } };
    for (const auto & [name, id] : tokens) {
        if (id) {
            input.own[name] = tokenizer_.token_text(*id);
        }
    }
    OrderedJson list = OrderedJson::array();
    for (const ChatMessage & message : messages) {
        list.push_back(message_json(message, content_in_parts_));
    }
    const bool has_tools = !settings_.tools.is_null(), as_variable = settings_.tool_place == ToolPlace::tools;
    if (as_variable ? has_tools || !tools_undefined_ : !tools_undefined_) {
        input.given["tools"] = as_variable ? settings_.tools : OrderedJson();
    }
    if (has_tools && settings_.tool_place == ToolPlace::xml_tools) {
        input.given["xml_tools"] = settings_.tools;
    } else if (has_tools && settings_.tool_place == ToolPlace::system_message) {
        if (list[0]["role"] != "system") {
            list.insert(list.begin(), message_json({ "system", "" }, content_in_parts_));
        }
        list[0]["tools"] = dump_json(settings_.tools);
    }
    input.given["messages"] = std::move(list);
    for (const OrderedJson * more : { &switch_, &settings_.variables }) {
        if (more->is_object()) {
            input.given.update(*more);
        }
    }
    input.now   = settings_.now.value_or(std::time(nullptr));
    input.guard = [this](std::string text, const std::string & mark) {
        return guard(tokenizer_, std::move(text), mark);
    };
    return run_jinja(source_, input);
}

void ChatTemplate::choose_form() {
    std::optional<Error> first;
    for (const auto & [in_parts, without_tools] :
         { std::pair(false, false), std::pair(false, true), std::pair(true, false), std::pair(true, true) }) {
        content_in_parts_ = in_parts;
        tools_undefined_  = without_tools && settings_.tools.is_null();
        try {
            if (contains(run({ { "user", question } }, true).text, question)) {
                return;
            }
        } catch (const Error & error) {
            if (!first) {
                first.emplace(error);
            }
        }
    }
    if (first) {
        throw *first;
    }
    refuse("it leaves the question out");
}

void ChatTemplate::choose_thinking() {
    const auto prompt_with = [&](const OrderedJson & variables) {
        switch_ = variables;
        return run({ { "user", question } }, true).text;
    };
    OrderedJson on, off;
    for (const char * name : { "enable_thinking", "thinking" }) {
        on  = OrderedJson{ { name, true } };
        off = OrderedJson{ { name, false } };
        if (settings_.variables.is_object() && settings_.variables.contains(name)) {
            continue; // it was decided already
        }
        if (prompt_with(on) != prompt_with(off)) {
            thinks_ = true;
            break;
        }
    }
    const bool has_switch = thinks_;
    thinks_               = thinks_ || contains(source_, think_end);
    switch_               = OrderedJson();
    if (settings_.thinking == Thinking::on && !thinks_) {
        throw Error(ErrorKind::usage, "reasoning on: the chat template of this model does not think aloud",
                    "leave it at auto");
    }
    if (settings_.thinking == Thinking::off && thinks_ && !has_switch) {
        throw Error(ErrorKind::usage, "reasoning off: the chat template of this model always thinks aloud",
                    "leave it at auto");
    }
    if (has_switch && settings_.thinking != Thinking::automatic) {
        switch_ = settings_.thinking == Thinking::on ? on : off;
    }
}

// What the template does with a small conversation.
void ChatTemplate::observe() {
    const ChatMessage      asked{ "user", question };
    const JinjaText        prompt = run({ asked }, true);
    const size_t           begin = prompt.text.rfind(think_begin), end = prompt.text.rfind(think_end);
    const std::string_view head = std::string_view(prompt.text).substr(0, prompt.text.find(question));
    begins_inside_ = begin != std::string::npos && begin > head.size() && (end == std::string::npos || end < begin);

    const std::vector<int32_t> with = ids_of(prompt, 0), without = ids_of(run({ asked }, false), 0);
    const auto                 differ = std::mismatch(with.begin(), with.end(), without.begin(), without.end());
    n_generation_prompt_              = int(with.end() - differ.first);

    // The first control token that is not BOS, else the word before the question.
    for (const auto & token : tokenizer_.find_control_tokens(head)) {
        if (start_of_turn_.empty() && std::optional<int32_t>(token.id) != tokenizer_.bos()) {
            start_of_turn_ = head.substr(token.begin, token.size);
        }
    }
    if (start_of_turn_.empty()) {
        const size_t last = head.find_last_not_of(" \n\t"), first = head.find_last_of(" \n\t>", last);
        if (last != std::string_view::npos) {
            const size_t from = first == std::string_view::npos ? 0 : first == last ? head.rfind('<', last) : first + 1;
            start_of_turn_    = head.substr(std::min(from, last), last + 1 - std::min(from, last));
        }
    }
    try {
        const JinjaText answered = run({ asked, { "assistant", answer } }, false);
        const size_t    said     = answered.text.rfind(answer);
        if (said != std::string::npos) {
            const auto tokens =
                tokenizer_.find_control_tokens(std::string_view(answered.text).substr(said + answer.size()));
            end_of_turn_ = tokens.empty() ? std::nullopt : std::optional<int32_t>(tokens[0].id);
        }
        for (const bool reasoned : { false, true }) {
            const std::string thinking = begins_inside_ ? "" : std::string(think_begin) + "\n";
            const std::string text =
                reasoned ? thinking + thought + "\n" + std::string(think_end) + "\n\n" + answer : answer;
            const JinjaText next        = run({ asked, { "assistant", text }, asked }, true);
            rewrites_[reasoned ? 1 : 0] = !starts_with(next.text, prompt.text + text);
        }
    } catch (const Error &) { // it takes no such conversation: every prompt is made anew
        rewrites_[0] = rewrites_[1] = true;
    }
}

ReasoningStart ChatTemplate::reasoning_start() const {
    return !thinks_ ? ReasoningStart::none : begins_inside_ ? ReasoningStart::inside : ReasoningStart::marked;
}

// Template and people's text meet anywhere, not at control tokens alone: what is between two control tokens is
// tokenized together.
std::vector<int32_t> ChatTemplate::ids_of(const JinjaText & rendered, size_t begin) const {
    const std::string_view text = rendered.text;
    std::vector<int32_t>   ids;
    size_t                 pos       = begin;
    const auto             add_plain = [&](size_t end) {
        const std::vector<int32_t> part = tokenizer_.encode(text.substr(pos, end - pos));
        ids.insert(ids.end(), part.begin(), part.end());
    };
    for (const TextRange & range : rendered.own) {
        const size_t first = std::max(range.begin, begin);
        if (range.end <= first) {
            continue;
        }
        for (const auto & token : tokenizer_.find_control_tokens(text.substr(first, range.end - first))) {
            add_plain(first + token.begin);
            ids.push_back(token.id);
            pos = first + token.begin + token.size;
        }
    }
    add_plain(text.size());
    return ids;
}

std::string ChatTemplate::render(const std::vector<ChatMessage> & messages, bool add_generation_prompt) const {
    check(messages);
    return run(messages, add_generation_prompt).text;
}

std::vector<int32_t> ChatTemplate::encode(const std::vector<ChatMessage> & messages, bool add_generation_prompt) const {
    check(messages);
    std::vector<int32_t> ids = ids_of(run(messages, add_generation_prompt), 0);
    if (tokenizer_.adds_bos() && (ids.empty() || ids[0] != *tokenizer_.bos())) {
        ids.insert(ids.begin(), *tokenizer_.bos()); // a template may leave it to the tokenizer
    }
    return ids;
}

std::optional<std::vector<int32_t>> ChatTemplate::encode_turn(std::vector<ChatMessage>         history,
                                                              const std::vector<int32_t> &     answer_tokens,
                                                              const std::vector<ChatMessage> & messages) const {
    check(history);
    check(messages);
    std::vector<int32_t> said  = answer_tokens;
    const bool           ended = !said.empty() && end_of_turn_ && said.back() == *end_of_turn_;
    if (!said.empty() && tokenizer_.is_end_of_generation(said.back())) {
        said.pop_back();
    }
    DecodeOptions with_special;
    with_special.special     = true;
    const std::string text   = tokenizer_.decode(said, with_special);
    std::string       before = run(history, true).text + text;
    history.push_back({ "assistant", text });
    history.insert(history.end(), messages.begin(), messages.end());
    const JinjaText whole = run(history, true);
    if (!starts_with(whole.text, before)) {
        return std::nullopt;
    }
    if (ended) {
        const std::string end = tokenizer_.token_text(*end_of_turn_);
        if (!starts_with(std::string_view(whole.text).substr(before.size()), end)) {
            return std::nullopt;
        }
        before += end;
    }
    return ids_of(whole, before.size());
}

} // namespace penelope
