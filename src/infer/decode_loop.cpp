#include "infer/decode_loop.h"

#include "base/clock.h"
#include "base/error.h"
#include "method/decode.h"

namespace penelope {

std::vector<Answer> DecodeLoop::run(const Prefill & prefilled, std::vector<Answer> initial,
                                    const GenerateOptions & wanted, const TokenCallback & on_token,
                                    const ReasoningCallback & on_reasoning) {
    const Stopwatch                               watch;
    std::vector<std::unique_ptr<GenerationState>> all;
    const auto                                    take = [&](GenerationState & one, const std::vector<float> & logits) {
        const std::string piece = one.accept_logits(logits.data());
        if (on_reasoning && !one.new_reasoning().empty()) {
            on_reasoning(one.new_reasoning());
        }
        if (on_token && !on_token(piece, one.last_token())) {
            one.end(FinishReason::cancelled);
            one.answer().finish_reason = FinishReason::cancelled;
        }
    };
    for (size_t i = 0; i < initial.size(); i++) {
        initial[i].layer_applications = prefilled.layer_applications;
        all.push_back(std::make_unique<GenerationState>(env_, wanted, prefilled.n_past[i], std::move(initial[i])));
        if (!all[i]->done()) {
            take(*all[i], prefilled.logits[i]);
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
