#include "text/chat_template.h"

#include "base/error.h"
#include "base/format.h"

#include <algorithm>

namespace penelope {

namespace {

// A turn is OPEN role ROLE_END before content END after; the capitals are control tokens.
struct Markers {
    std::string open, role_end, before, end, after;
};

Markers markers_of(ChatFamily family) {
    switch (family) {
        case ChatFamily::chatml: return { "<|im_start|>", "", "\n", "<|im_end|>", "\n" };
        case ChatFamily::llama3: return { "<|start_header_id|>", "<|end_header_id|>", "\n\n", "<|eot_id|>", "" };
    }
    return {};
}

// What Python's str.strip(), and so Jinja's trim, takes for white space.
constexpr std::string_view spaces[] = {
    " ",
    "\t",
    "\n",
    "\v",
    "\f",
    "\r",
    "\x1C",
    "\x1D",
    "\x1E",
    "\x1F",
    "\xC2\x85",
    "\xC2\xA0",
    "\xE1\x9A\x80",
    "\xE2\x80\x80",
    "\xE2\x80\x81",
    "\xE2\x80\x82",
    "\xE2\x80\x83",
    "\xE2\x80\x84",
    "\xE2\x80\x85",
    "\xE2\x80\x86",
    "\xE2\x80\x87",
    "\xE2\x80\x88",
    "\xE2\x80\x89",
    "\xE2\x80\x8A",
    "\xE2\x80\xA8",
    "\xE2\x80\xA9",
    "\xE2\x80\xAF",
    "\xE2\x81\x9F",
    "\xE3\x80\x80",
};

std::string trimmed(std::string_view text) {
    const auto strip = [&](auto && at_edge, auto && remove) {
        for (bool found = true; found;) {
            found = false;
            for (const std::string_view space : spaces) {
                if (text.size() >= space.size() && at_edge(space.size()) == space) {
                    remove(space.size());
                    found = true;
                }
            }
        }
    };
    strip([&](size_t n) { return text.substr(0, n); }, [&](size_t n) { text.remove_prefix(n); });
    strip([&](size_t n) { return text.substr(text.size() - n); }, [&](size_t n) { text.remove_suffix(n); });
    return std::string(text);
}

std::string without_line_ends(std::string_view text) {
    text = text.substr(std::min(text.find_first_not_of('\n'), text.size()));
    return std::string(text.substr(0, text.find_last_not_of('\n') + 1));
}

// An answer without the reasoning in front of it.
std::string after_reasoning(std::string_view content) {
    const size_t end = content.rfind(think_end);
    if (end == std::string_view::npos) {
        return std::string(content);
    }
    content.remove_prefix(end + think_end.size());
    return std::string(content.substr(std::min(content.find_first_not_of('\n'), content.size())));
}

std::string reasoning_of(std::string_view content) {
    const size_t end = content.find(think_end);
    if (end == std::string_view::npos) {
        return "";
    }
    content            = content.substr(0, end);
    const size_t begin = content.rfind(think_begin);
    return without_line_ends(begin == std::string_view::npos ? content : content.substr(begin + think_begin.size()));
}

void check(const std::vector<ChatMessage> & messages) {
    if (messages.empty()) {
        throw Error(ErrorKind::usage, "conversation: no messages");
    }
    for (const ChatMessage & message : messages) {
        if (message.role != "system" && message.role != "user" && message.role != "assistant") {
            throw Error(ErrorKind::usage, "message of role " + in_quotes(message.role) + ": unknown role",
                        "roles are system, user and assistant");
        }
    }
}

} // namespace

ChatTemplate::ChatTemplate(Tokenizer tokenizer, Thinking thinking)
    : tokenizer_(std::move(tokenizer)), format_(recognise_chat_format(tokenizer_.chat_template())),
      generation_suffix_(format_.generation_suffix) {
    if (thinking == Thinking::on && !format_.thinks()) {
        throw Error(ErrorKind::usage, "reasoning on: the chat template of this model does not think aloud",
                    "leave it at auto");
    }
    if (thinking == Thinking::off && format_.suffix_without_thinking) {
        generation_suffix_ = *format_.suffix_without_thinking;
    } else if (thinking == Thinking::off && format_.thinks()) {
        throw Error(ErrorKind::usage, "reasoning off: the chat template of this model always thinks aloud",
                    "leave it at auto");
    }
}

ReasoningStart ChatTemplate::reasoning_start() const {
    if (!format_.thinks()) {
        return ReasoningStart::none;
    }
    const size_t begin = generation_suffix_.rfind(think_begin), end = generation_suffix_.rfind(think_end);
    const bool   open = begin != std::string::npos && (end == std::string::npos || end < begin);
    return open ? ReasoningStart::inside : ReasoningStart::marked;
}

bool ChatTemplate::rewrites_answer(bool reasoned) const {
    return format_.drops_reasoning && (reasoned || !generation_suffix_.empty());
}

int ChatTemplate::n_generation_prompt() const {
    Segments prompt;
    add_generation_prompt(prompt);
    return int(ids_of(prompt).size());
}

ChatTemplate::ChatTemplate(Tokenizer tokenizer, ChatFormat format)
    : tokenizer_(std::move(tokenizer)), format_(std::move(format)), generation_suffix_(format_.generation_suffix) {
    const Markers markers = markers_of(format_.family);
    for (const std::string & token : { markers.open, markers.role_end, markers.end }) {
        if (!token.empty() && !tokenizer_.find_token(token)) {
            throw Error(ErrorKind::usage,
                        std::string("chat template ") + chat_family_name(format_.family) +
                            ": the vocabulary of this model has no " + token,
                        "the model was not made for it; use another, or --raw");
        }
    }
}

void ChatTemplate::add_turn(Segments & out, const std::string & role, const std::string & content) const {
    const Markers markers = markers_of(format_.family);
    if (markers.role_end.empty()) {
        out.push_back({ markers.open, true });
        out.push_back({ role + markers.before + content, false });
    } else {
        out.push_back({ markers.open + role + markers.role_end, true });
        out.push_back({ markers.before + content, false });
    }
    out.push_back({ markers.end + markers.after, true });
}

void ChatTemplate::add_message(Segments & out, const ChatMessage & message, bool answers_last_question) const {
    std::string content = format_.trims ? trimmed(message.content) : message.content;
    if (message.role == "assistant" && answers_last_question && format_.wraps_reasoning) {
        std::string reasoning =
            message.reasoning.empty() ? reasoning_of(content) : without_line_ends(message.reasoning);
        reasoning = format_.trims ? trimmed(reasoning) : reasoning;
        content   = "<think>\n" + reasoning + "\n</think>\n\n" + after_reasoning(content);
    } else if (message.role == "assistant" && !answers_last_question && format_.drops_reasoning) {
        content = after_reasoning(content);
    }
    add_turn(out, message.role, content);
}

void ChatTemplate::add_generation_prompt(Segments & out) const {
    const Markers markers = markers_of(format_.family);
    out.push_back({ markers.open + "assistant" + markers.role_end + markers.before + generation_suffix_, true });
}

ChatTemplate::Segments ChatTemplate::segments(const std::vector<ChatMessage> & messages, bool generation_prompt) const {
    check(messages);
    Segments out;
    if (format_.with_bos && tokenizer_.bos()) {
        out.push_back({ tokenizer_.token_text(*tokenizer_.bos()), true });
    }
    size_t first = 0;
    if (format_.system_preface) {
        std::string content = *format_.system_preface;
        if (messages[0].role == "system") {
            content += format_.trims ? trimmed(messages[0].content) : messages[0].content;
            first = 1;
        }
        add_turn(out, "system", content);
    } else if (format_.default_system && messages[0].role != "system") {
        add_turn(out, "system", *format_.default_system);
    }
    size_t last_question = 0;
    for (size_t i = 0; i < messages.size(); i++) {
        last_question = messages[i].role == "user" ? i : last_question;
    }
    for (size_t i = first; i < messages.size(); i++) {
        add_message(out, messages[i], i > last_question);
    }
    if (generation_prompt) {
        add_generation_prompt(out);
    }
    return out;
}

ChatTemplate::Segments ChatTemplate::turn_segments(const std::vector<ChatMessage> & messages, bool ended) const {
    check(messages);
    const Markers markers = markers_of(format_.family);
    Segments      out;
    out.push_back({ (ended ? "" : markers.end) + markers.after, true });
    for (const ChatMessage & message : messages) {
        add_message(out, message, false);
    }
    add_generation_prompt(out);
    return out;
}

std::string ChatTemplate::text_of(const Segments & segments) {
    std::string text;
    for (const Segment & segment : segments) {
        text += segment.text;
    }
    return text;
}

std::vector<int32_t> ChatTemplate::ids_of(const Segments & segments) const {
    std::vector<int32_t> ids;
    for (const Segment & segment : segments) {
        const std::vector<int32_t> part = tokenizer_.encode(segment.text, { false, segment.trusted });
        ids.insert(ids.end(), part.begin(), part.end());
    }
    return ids;
}

std::string ChatTemplate::render(const std::vector<ChatMessage> & messages, bool add_generation_prompt) const {
    return text_of(segments(messages, add_generation_prompt));
}

std::vector<int32_t> ChatTemplate::encode(const std::vector<ChatMessage> & messages, bool add_generation_prompt) const {
    return ids_of(segments(messages, add_generation_prompt));
}

std::string ChatTemplate::render_turn(const std::vector<ChatMessage> & messages, bool ended) const {
    return text_of(turn_segments(messages, ended));
}

std::vector<int32_t> ChatTemplate::encode_turn(const std::vector<ChatMessage> & messages,
                                               const std::vector<int32_t> &     answer) const {
    return ids_of(turn_segments(messages, !answer.empty() && answer.back() == end_of_turn()));
}

std::optional<int32_t> ChatTemplate::end_of_turn() const {
    return tokenizer_.find_token(markers_of(format_.family).end);
}

std::string ChatTemplate::start_of_turn() const {
    return markers_of(format_.family).open;
}

} // namespace penelope
