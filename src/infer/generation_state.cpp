#include "infer/generation_state.h"

#include "gguf/finite.h"
#include "text/tokenizer.h"
#include "tools/tool_set.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace penelope {

namespace {

// The chosen token first, then the n best; natural logarithms of probabilities at temperature 1.
std::vector<TokenLogprob> token_logprobs(const float * logits, int n_vocab, int32_t chosen, int n) {
    const float best = *std::max_element(logits, logits + n_vocab);
    double      sum  = 0.0;
    for (int i = 0; i < n_vocab; i++) {
        sum += std::exp(double(logits[i] - best));
    }
    const double total  = double(best) + std::log(sum);
    const auto   scored = [&](int32_t id) { return TokenLogprob{ id, float(double(logits[id]) - total) }; };
    std::vector<TokenLogprob> scores{ scored(chosen) };
    std::vector<int32_t>      ids(static_cast<size_t>(n_vocab));
    std::iota(ids.begin(), ids.end(), 0);
    n = std::min(n, n_vocab);
    std::partial_sort(ids.begin(), ids.begin() + n, ids.end(),
                      [&](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
    for (int i = 0; i < n; i++) {
        scores.push_back(scored(ids[size_t(i)]));
    }
    return scores;
}

} // namespace

GenerationState::GenerationState(const GenerationEnv & env, const GenerateOptions & options, int row, Answer initial)
    : env_(env), options_(options), row_(row - 1), answer_(std::move(initial)), sampler_(options.sampling),
      text_(env.tokenizer), parts_(options.reasoning), stops_(options.stop) {
    if (options.tools) {
        for (const std::string & mark : options.tools->format->control_marks) {
            const auto token = env.tokenizer.find_token(mark);
            if (token && is_special(env.tokenizer.token_type(*token))) {
                control_marks_.push_back(*token);
            }
        }
        calls_.emplace(*options.tools->format, options.tools->tools,
                       [this](const std::string & function, std::string_view arguments) {
                           return hold_call(function, arguments);
                       });
    }
    if (options.grammar) {
        filter_ = std::make_unique<TokenFilter>(options.grammar, env.tokenizer, control_marks_);
    }
    if (options.n_predict == 0) {
        end(FinishReason::length);
    }
}

// The marks of a chain of thought and of tool calls are looked for in the text, also where they are control tokens,
// which have none.
std::string GenerationState::text_of(int32_t token) {
    if (token >= env_.tokenizer.n_vocab()) {
        return "";
    }
    const std::string written = env_.tokenizer.token_text(token);
    const bool thought = options_.reasoning != ReasoningStart::none && is_special(env_.tokenizer.token_type(token)) &&
                         (written == think_begin || written == think_end);
    const bool mark = thought || std::find(control_marks_.begin(), control_marks_.end(), token) != control_marks_.end();
    return mark ? text_.flush() + written : text_.feed(token);
}

std::string GenerationState::record_reasoning(const ReasoningPiece & piece) {
    new_reasoning_ += piece.reasoning;
    answer_.reasoning += piece.reasoning;
    return piece.answer;
}

// From here on the model is held to the arguments of the function. False: what it has written of them is no JSON.
bool GenerationState::hold_call(const std::string & function, std::string_view arguments) {
    if (filter_) {
        return true; // the whole answer is held to a grammar
    }
    for (const auto & rest : options_.tools->rests.at(function)) {
        auto filter = std::make_unique<TokenFilter>(rest, env_.tokenizer, control_marks_);
        if (filter->accept_text(arguments)) {
            filter_       = std::move(filter);
            filters_call_ = true;
            return true;
        }
    }
    return false;
}

// Stop strings end the text, not a call. Text that waits because it may be one is certain when a call follows.
std::string GenerationState::record_calls(std::vector<ToolEvent> events) {
    std::string text;
    const auto  say = [&](const std::string & more) {
        if (!more.empty()) {
            new_events_.push_back({ ToolEvent::Kind::text, more });
            text += more;
        }
    };
    for (ToolEvent & event : events) {
        if (stops_.hit()) {
            break;
        }
        switch (event.kind) {
            case ToolEvent::Kind::text: say(stops_.feed(event.text)); continue;
            case ToolEvent::Kind::begin:
                say(stops_.flush());
                answer_.tool_calls.push_back({ "", event.text, "", false });
                break;
            case ToolEvent::Kind::arguments: answer_.tool_calls.back().arguments += event.text; break;
            case ToolEvent::Kind::end: answer_.tool_calls.back().complete = true; break;
        }
        new_events_.push_back(std::move(event));
    }
    return text;
}

// With a grammar the first try is mostly right, and looking at one token is cheaper than at all of them. A second one
// among those the grammar takes leaves their proportions as they are. A chain of thought is free.
int32_t GenerationState::sample_token(const float * logits) {
    int32_t    token  = sampler_.sample(logits, env_.n_vocab);
    const bool thinks = answer_.tokens.empty() && options_.reasoning == ReasoningStart::marked &&
                        token < env_.tokenizer.n_vocab() && env_.tokenizer.token_text(token) == think_begin;
    const bool is_free = !filter_ || thinks || parts_.inside();
    if (!is_free && !filter_->allows(token)) {
        token = sampler_.sample(filter_->masked(logits, env_.n_vocab), env_.n_vocab);
    }
    if (!is_free) {
        filter_->accept(token);
    }
    sampler_.accept(token);
    return token;
}

std::string GenerationState::accept_logits(const float * logits) {
    const int n_vocab = env_.n_vocab;
    if (!all_finite(logits, size_t(n_vocab))) {
        env_.not_finite();
    }
    const int32_t token = sample_token(logits);
    answer_.tokens.push_back(token);
    row_++;
    new_reasoning_.clear();
    new_events_.clear();
    if (options_.n_logprobs >= 0) {
        answer_.logprobs.push_back(token_logprobs(logits, n_vocab, token, options_.n_logprobs));
    }

    if (!options_.ignore_end && env_.tokenizer.is_end_of_generation(token)) {
        return end(FinishReason::stop);
    }
    const bool  reasoned = parts_.inside();
    std::string piece    = record_reasoning(parts_.feed(text_of(token)));
    answer_.n_reasoning += reasoned || parts_.inside();
    if (filter_ && filters_call_ && filter_->complete()) {
        filter_.reset(); // the arguments are there; what follows is free
        filters_call_ = false;
    }
    piece = calls_ ? record_calls(calls_->feed(piece)) : stops_.feed(piece);
    answer_.text += piece;
    if (stops_.hit()) {
        answer_.stopped_by = stops_.found();
        return piece + end(FinishReason::stop);
    }
    const bool called = !answer_.tool_calls.empty() && answer_.tool_calls.back().complete;
    if ((filter_ && !filters_call_ && filter_->complete()) || (called && !options_.tools->parallel)) {
        return piece + end(FinishReason::stop);
    }
    const bool enough = options_.n_predict >= 0 && int(answer_.tokens.size()) >= options_.n_predict;
    if (enough || row_ >= env_.n_ctx) {
        piece += end(FinishReason::length);
    }
    return piece;
}

std::string GenerationState::end(FinishReason reason) {
    if (done_) {
        return "";
    }
    done_                 = true;
    answer_.finish_reason = reason;
    std::string left      = record_reasoning(parts_.feed(text_.flush()));
    left += record_reasoning(parts_.flush());
    std::string rest;
    if (calls_) {
        rest = record_calls(calls_->feed(left));
        rest += record_calls(calls_->flush());
    } else if (!stops_.hit()) {
        rest = stops_.feed(left);
    }
    const std::string held = stops_.flush();
    if (calls_ && !held.empty()) {
        new_events_.push_back({ ToolEvent::Kind::text, held });
    }
    rest += held;
    answer_.text += rest;
    return rest;
}

void set_decode_time(Answer & answer, double ms) {
    answer.timings.decode_ms = ms;
    // The first token comes with the prompt; decoding made the others.
    const size_t n                   = answer.tokens.size();
    answer.timings.tokens_per_second = ms > 0 && n > 1 ? double(n - 1) * 1000.0 / ms : 0.0;
}

} // namespace penelope
