#include "infer/answer_loop.h"

#include "base/clock.h"
#include "base/error.h"
#include "gguf/finite.h"
#include "method/decode.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace penelope {

// One sequence while its answer grows.
struct AnswerLoop::Growing {
    Growing(const Tokenizer & tokenizer, const SamplingOptions & sampling) : sampler(sampling), text(tokenizer) {}
    Sampler       sampler;
    StreamDecoder text;
    Answer        answer;
    int           row  = 0; // the next token's place
    bool          done = false;
};

// Draws the next token of one sequence and decides whether its answer is complete.
void AnswerLoop::take_token(Growing & one, const float * logits, const GenerateOptions & wanted,
                            const TokenCallback & on_token) {
    Answer & answer = one.answer;
    if (!all_finite(logits, size_t(n_vocab_))) {
        not_finite_();
    }
    const int32_t token = one.sampler.sample(logits, n_vocab_);
    answer.tokens.push_back(token);

    std::string piece;
    if (!wanted.ignore_end && tokenizer_.is_end_of_generation(token)) {
        answer.finish_reason = FinishReason::stop;
        one.done             = true;
    } else {
        piece = token < tokenizer_.n_vocab() ? one.text.feed(token) : "";
        if ((wanted.n_predict >= 0 && int(answer.tokens.size()) >= wanted.n_predict) || one.row >= context_.n_rows()) {
            answer.finish_reason = FinishReason::length;
            one.done             = true;
        }
    }
    if (one.done) {
        piece += one.text.flush();
    }
    answer.text += piece;
    if (on_token && !on_token(piece, token)) {
        if (!one.done) {
            const std::string rest = one.text.flush();
            answer.text += rest;
        }
        answer.finish_reason = FinishReason::cancelled;
        one.done             = true;
    }
}

// Decodes all sequences side by side until each is done.
std::vector<Answer> AnswerLoop::run(const Filled & filled, std::vector<Answer> blanks, const GenerateOptions & wanted,
                                    const TokenCallback & on_token) {
    const Stopwatch                       watch;
    std::vector<std::unique_ptr<Growing>> all;
    std::vector<Answer>                   answers;
    for (size_t i = 0; i < blanks.size(); i++) {
        all.push_back(std::make_unique<Growing>(tokenizer_, wanted.sampling));
        all[i]->answer                    = std::move(blanks[i]);
        all[i]->row                       = filled.n_rows[i];
        all[i]->answer.layer_applications = filled.layer_applications;
        if (wanted.n_predict == 0) {
            all[i]->done                 = true;
            all[i]->answer.finish_reason = FinishReason::length;
        } else {
            take_token(*all[i], filled.logits[i].data(), wanted, on_token);
        }
    }
    const auto finish = [&](Growing & one) {
        one.answer.timings.decode_ms = watch.elapsed_ms();
        const double seconds         = one.answer.timings.decode_ms / 1000.0;
        // The first token comes with the prompt; decoding made the others.
        one.answer.timings.tokens_per_second =
            seconds > 0 && one.answer.tokens.size() > 1 ? double(one.answer.tokens.size() - 1) / seconds : 0.0;
    };
    while (true) {
        std::vector<NextToken> next;
        for (size_t i = 0; i < all.size(); i++) {
            if (!all[i]->done) {
                next.push_back({ int(i), all[i]->row, all[i]->answer.tokens.back() });
            } else if (all[i]->answer.timings.decode_ms == 0) {
                finish(*all[i]);
            }
        }
        if (next.empty()) {
            break;
        }
        try {
            if (cancelled_()) {
                throw Error(ErrorKind::cancelled, "interrupted");
            }
            const auto rows = decode(context_, next);
            for (size_t i = 0; i < next.size(); i++) {
                Growing & one = *all[size_t(next[i].stream)];
                one.row++;
                take_token(one, rows[i].data(), wanted, on_token);
            }
        } catch (const Error & error) {
            if (error.kind != ErrorKind::cancelled) {
                throw;
            }
            for (const NextToken & token : next) {
                Growing & one            = *all[size_t(token.stream)];
                one.answer.finish_reason = FinishReason::cancelled;
                one.done                 = true;
            }
        }
    }
    for (auto & one : all) {
        answers.push_back(std::move(one->answer));
    }
    return answers;
}

} // namespace penelope
