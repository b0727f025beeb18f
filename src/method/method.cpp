#include "method/method.h"

#include "base/error.h"
#include "method/latent_steps.h"

#include <algorithm>

namespace penelope {

int reusable_prefix(const Tokens & cached, const Tokens & prompt, int bucket) {
    constexpr int kFewRows = 16;
    const size_t  n        = std::min(cached.size(), prompt.size());
    const auto    differ   = std::mismatch(cached.begin(), cached.begin() + ptrdiff_t(n), prompt.begin());
    const int     n_common = std::min(int(differ.first - cached.begin()), int(prompt.size()) - 1);
    return n_common < kFewRows ? 0 : n_common - n_common % bucket;
}

int bitexact_split(int begin, int n, int end) {
    constexpr int kTogether = 4,
                  kLeast    = 8; // rows that kernels of ggml's CPU take at a time, and that the choosiest asks for
    const int n_first       = (std::min(n, end - kLeast) - begin) / kTogether * kTogether;
    return n_first >= kLeast ? begin + n_first : begin;
}

int bitexact_prefix(const Tokens & cached, const Tokens & prompt, const ContextOptions & options) {
    const int n     = reusable_prefix(cached, prompt, options.bucket);
    const int begin = n - n % options.n_batch;
    return bitexact_split(begin, n, std::min(begin + options.n_batch, int(prompt.size())));
}

std::vector<Prompt> fresh_prompts(const std::vector<Tokens> & prompts) {
    std::vector<Prompt> fresh;
    for (const Tokens & tokens : prompts) {
        fresh.push_back({ tokens, int(fresh.size()), 0 });
    }
    return fresh;
}

void Method::sweep(Context & context, const std::vector<Tokens> & prompts, const std::vector<int> & steps,
                   const std::function<void(int, const Prefill &)> & answer) const {
    for (int n_steps : steps) {
        answer(n_steps, prefill(context, fresh_prompts(prompts), n_steps));
    }
}

LatentSteps * Method::steps(Context &) const {
    return nullptr;
}

Prefill Method::prefill(Context & context, const std::vector<Prompt> & prompts, int n_steps) const {
    return steps(context)->prefill(prompts, n_steps);
}

std::vector<StateTensor> Method::states(Context & context, const Prompt & prompt, int n_steps) const {
    LatentSteps * latent = steps(context);
    return latent ? latent->states(prompt, n_steps) : std::vector<StateTensor>{};
}

void check_steps(const Method & method, int n_steps) {
    if (n_steps > 0 && method.max_steps() == 0) {
        throw Error(ErrorKind::usage,
                    "-K " + std::to_string(n_steps) + ": the method " + method.name() + " takes no latent steps",
                    "leave -K out, or give a sidecar");
    }
    if (n_steps < 0 || n_steps > method.max_steps()) {
        throw Error(ErrorKind::usage,
                    "-K " + std::to_string(n_steps) + ": out of range, " + method.name() + " takes 0 to " +
                        std::to_string(method.max_steps()),
                    "use -K " + std::to_string(n_steps < 0 ? 0 : method.max_steps()) +
                        (n_steps < 0 ? " or more" : " or less"));
    }
}

void check_request(const Method & method, const Context & context, const std::vector<Tokens> & prompts, int n_steps) {
    check_steps(method, n_steps);
    if (int(prompts.size()) > context.options().n_streams) {
        throw Error(ErrorKind::usage, std::to_string(prompts.size()) + " prompts at once: the session has room for " +
                                          std::to_string(context.options().n_streams));
    }
    for (const Tokens & prompt : prompts) {
        if (prompt.empty()) {
            throw Error(ErrorKind::usage, "prompt: it is empty", "give a question or a text to continue");
        }
        const size_t needed = prompt.size() + size_t(method.n_extra_rows(n_steps)) + 1;
        if (needed > size_t(context.n_ctx())) {
            const int n_extra = method.n_extra_rows(n_steps);
            const int n_train = context.model().config.n_ctx_train;
            throw Error(ErrorKind::usage,
                        "prompt: " + std::to_string(prompt.size()) + " tokens" +
                            (n_extra > 0 ? " and " + std::to_string(n_extra) + " latent rows leave" : " leave") +
                            " no room for an answer in a context of " + std::to_string(context.n_ctx()),
                        needed <= size_t(n_train)
                            ? "raise -c to at least " + std::to_string(needed)
                            : "shorten the prompt: the model was trained for " + std::to_string(n_train) + " rows");
        }
        for (int32_t id : prompt) {
            if (id < 0 || id >= context.model().config.n_vocab) {
                throw Error(ErrorKind::usage, "prompt: token " + std::to_string(id) + " is not in the vocabulary of " +
                                                  std::to_string(context.model().config.n_vocab));
            }
        }
    }
}

} // namespace penelope
