#include "method/method.h"

#include "base/error.h"

namespace penelope {

void Method::sweep(Context & context, const std::vector<Tokens> & prompts, const std::vector<int> & steps,
                   const std::function<void(int, const Filled &)> & answer) const {
    for (int n_steps : steps) {
        answer(n_steps, fill(context, prompts, n_steps, 0));
    }
}

std::vector<StateTensor> Method::states(Context &, const Tokens &, int) const {
    return {};
}

void check_request(const Method & method, const Context & context, const std::vector<Tokens> & prompts, int n_steps) {
    if (n_steps < 0 || n_steps > method.max_steps()) {
        throw Error(ErrorKind::usage, "-K " + std::to_string(n_steps) + ": out of range, " + method.name() +
                                          " takes 0 to " + std::to_string(method.max_steps()));
    }
    if (int(prompts.size()) > context.options().n_streams) {
        throw Error(ErrorKind::usage, std::to_string(prompts.size()) + " prompts at once: the session has room for " +
                                          std::to_string(context.options().n_streams));
    }
    for (const Tokens & prompt : prompts) {
        if (prompt.empty()) {
            throw Error(ErrorKind::usage, "prompt: is empty");
        }
        const size_t needed = prompt.size() + size_t(method.n_extra_rows(n_steps)) + 1;
        if (needed > size_t(context.n_rows())) {
            throw Error(ErrorKind::usage,
                        "prompt: " + std::to_string(prompt.size()) + " tokens and " +
                            std::to_string(method.n_extra_rows(n_steps)) +
                            " latent rows leave no room for an answer in a context of " +
                            std::to_string(context.n_rows()),
                        "raise -c to at least " + std::to_string(needed));
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
