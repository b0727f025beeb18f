#include "conversation.h"

#include "base/json.h"
#include "infer/prompt.h"
#include "text/prompt_template.h"
#include "text/wording.h"

namespace penelope {

Conversation::Conversation(const Engine & engine, std::string system, bool raw, Thinking thinking)
    : engine_(engine), system_(std::move(system)), raw_(raw) {
    if (!raw && (engine.wording() == nullptr || engine.wording()->prompt_template == chat_prompt_template)) {
        template_.emplace(engine.tokenizer(), thinking);
    } else if (thinking == Thinking::on) {
        throw Error(ErrorKind::usage, "--reasoning on: nothing goes through a chat template here",
                    raw ? "leave --raw out" : "the sidecar has a prompt of its own; leave --reasoning out");
    }
}

std::vector<ChatMessage> Conversation::messages(const std::string & question) const {
    std::vector<ChatMessage> all;
    if (!system_.empty()) {
        all.push_back({ "system", system_ });
    }
    for (const Turn & turn : turns_) {
        all.push_back({ "user", turn.question });
        all.push_back({ "assistant", turn.answer->text });
    }
    all.push_back({ "user", question });
    return all;
}

void Conversation::ask(const std::string & text) {
    Turn turn;
    turn.question = text;
    if (!template_) {
        turn.prompt = prompt_tokens(engine_, text, raw_ ? PromptForm::raw : PromptForm::templated);
    } else if (turns_.empty() || template_->rewrites_answer(turns_.back().answer->n_reasoning > 0)) {
        turn.prompt = template_->encode(messages(text));
    } else {
        // The answer's own tokens go on, not a new reading of its text: they are what the cache holds.
        const Turn & before = turns_.back();
        turn.prompt         = before.prompt;
        turn.prompt.insert(turn.prompt.end(), before.answer->tokens.begin(), before.answer->tokens.end());
        const std::vector<int32_t> next = template_->encode_turn({ { "user", text } }, before.answer->tokens);
        turn.prompt.insert(turn.prompt.end(), next.begin(), next.end());
    }
    turns_.push_back(std::move(turn));
}

void Conversation::answer(const Answer & answer) {
    turns_.back().answer = answer;
}

void Conversation::drop_question() {
    turns_.pop_back();
}

bool Conversation::drop_answer() {
    if (turns_.empty()) {
        return false;
    }
    turns_.back().answer.reset();
    return true;
}

void Conversation::clear() {
    turns_.clear();
}

size_t Conversation::n_messages() const {
    return 2 * turns_.size();
}

std::string Conversation::transcript() const {
    std::string out;
    if (!system_.empty() && template_) {
        out += dump_json(OrderedJson{ { "role", "system" }, { "content", system_ } }) + "\n";
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
