#include "train/step_targets.h"

#include <algorithm>

namespace penelope {

std::vector<std::vector<int32_t>> step_target_tokens(const Task & task, const Example & example,
                                                     const Tokenizer & tokenizer, int n_steps, int n_rows) {
    std::vector<std::vector<int32_t>> thoughts{ size_t(n_steps) };
    const std::vector<std::string>    results = step_results(task, example);
    for (size_t t = 0; !results.empty() && t < thoughts.size(); t++) {
        std::vector<int32_t> tokens = tokenizer.encode(results[std::min(t, results.size() - 1)]);
        tokens.resize(std::min(tokens.size(), size_t(n_rows)));
        thoughts[t] = std::move(tokens);
    }
    return thoughts;
}

} // namespace penelope
