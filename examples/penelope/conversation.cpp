#include "conversation.h"

#include "base/json.h"

#include <utility>

namespace penelope {

Conversation::Conversation(const PromptWriter & writer, int n_ctx, int n_free)
    : writer_(writer), n_ctx_(size_t(n_ctx)), n_free_(size_t(n_free)) {}

// The system message, the turns from `first` on and the question.
std::vector<ChatMessage> Conversation::messages_from(size_t first, size_t end, const std::string & question) const {
    std::vector<ChatMessage> messages;
    if (!writer_.system().empty()) {
        messages.push_back({ "system", writer_.system() });
    }
    for (size_t i = first; i < end; ++i) {
        messages.push_back({ "user", turns_[i].question });
        messages.push_back({ "assistant", turns_[i].answer->text });
    }
    messages.push_back({ "user", question });
    return messages;
}

std::vector<int32_t> Conversation::encode_from(size_t first, const std::string & question) const {
    return writer_.chat()->encode(messages_from(first, turns_.size(), question));
}

void Conversation::ask(const std::string & text) {
    Turn turn;
    turn.question = text;
    if (writer_.chat() == nullptr || turns_.empty()) {
        turn.prompt = writer_.tokens(text);
        turns_.push_back(std::move(turn));
        return;
    }
    const Turn & before = turns_.back();
    turn.first          = before.first;
    const auto next     = writer_.chat()->encode_turn(messages_from(turn.first, turns_.size() - 1, before.question),
                                                      before.answer->tokens, { { "user", text } });
    if (next) {
        // Reuse the answer's own tokens instead of tokenizing its text again: they are what the KV cache holds.
        turn.prompt = before.prompt;
        turn.prompt.insert(turn.prompt.end(), before.answer->tokens.begin(), before.answer->tokens.end());
        turn.prompt.insert(turn.prompt.end(), next->begin(), next->end());
    } else {
        turn.prompt = encode_from(turn.first, text);
    }
    if (turn.prompt.size() + n_free_ > n_ctx_) {
        // Drop to half of the context: the shortened prompt must be computed from scratch, so do it rarely.
        do {
            turn.prompt = encode_from(++turn.first, text);
        } while (turn.first < turns_.size() && turn.prompt.size() > n_ctx_ / 2);
    }
    turns_.push_back(std::move(turn));
}

void Conversation::answer(const Answer & answer) {
    turns_.back().answer = answer;
}

void Conversation::drop_question() {
    turns_.pop_back();
}

std::optional<Answer> Conversation::take_answer() {
    return turns_.empty() ? std::nullopt : std::exchange(turns_.back().answer, std::nullopt);
}

void Conversation::clear() {
    turns_.clear();
}

size_t Conversation::n_dropped_turns() const {
    return turns_.empty() ? 0 : turns_.back().first;
}

size_t Conversation::n_messages() const {
    return 2 * turns_.size();
}

std::string Conversation::transcript() const {
    std::string out;
    if (!writer_.system().empty()) {
        out += dump_json(OrderedJson{ { "role", "system" }, { "content", writer_.system() } }) + "\n";
    }
    for (const Turn & turn : turns_) {
        const Answer & answer = *turn.answer;
        out += dump_json(OrderedJson{ { "role", "user" }, { "content", turn.question } }) + "\n";
        OrderedJson said{ { "role", "assistant" }, { "content", answer.text } };
        if (answer.n_reasoning > 0) {
            said["reasoning_content"] = answer.reasoning;
        }
        said.update(OrderedJson{ { "method", answer.method },
                                 { "K", answer.n_steps },
                                 { "finish_reason", finish_reason_name(answer.finish_reason) },
                                 { "ms", answer.timings.prompt_ms + answer.timings.decode_ms } });
        out += dump_json(said) + "\n";
    }
    return out;
}

} // namespace penelope
