#include "infer/answer_loop.h"

#include "base/clock.h"
#include "base/error.h"
#include "method/decode.h"

namespace penelope {

std::vector<Answer> AnswerLoop::run(const Filled & filled, std::vector<Answer> blanks, const GenerateOptions & wanted,
                                    const TokenCallback & on_token, const ReasoningCallback & on_reasoning) {
    const Stopwatch                             watch;
    std::vector<std::unique_ptr<GrowingAnswer>> all;
    const auto                                  take = [&](GrowingAnswer & one, const std::vector<float> & logits) {
        const std::string piece = one.take(logits.data());
        if (on_reasoning && !one.new_reasoning().empty()) {
            on_reasoning(one.new_reasoning());
        }
        if (on_token && !on_token(piece, one.last_token())) {
            one.end(FinishReason::cancelled);
            one.answer().finish_reason = FinishReason::cancelled;
        }
    };
    for (size_t i = 0; i < blanks.size(); i++) {
        blanks[i].layer_applications = filled.layer_applications;
        all.push_back(std::make_unique<GrowingAnswer>(facts_, wanted, filled.n_rows[i], std::move(blanks[i])));
        if (!all[i]->done()) {
            take(*all[i], filled.logits[i]);
        }
    }
    while (true) {
        std::vector<NextToken> next;
        for (size_t i = 0; i < all.size(); i++) {
            if (!all[i]->done()) {
                next.push_back({ int(i), all[i]->row(), all[i]->last_token() });
            } else if (all[i]->answer().timings.decode_ms == 0) {
                set_decode_time(all[i]->answer(), watch.elapsed_ms());
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
                take(*all[size_t(next[i].stream)], rows[i]);
            }
        } catch (const Error & error) {
            if (error.kind != ErrorKind::cancelled) {
                throw;
            }
            for (const NextToken & token : next) {
                all[size_t(token.stream)]->end(FinishReason::cancelled);
            }
        }
    }
    std::vector<Answer> answers;
    for (auto & one : all) {
        answers.push_back(std::move(one->answer()));
    }
    return answers;
}

} // namespace penelope
