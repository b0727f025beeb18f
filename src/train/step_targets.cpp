#include "train/step_targets.h"

#include <algorithm>

namespace penelope {

void StepTargets::begin_with_start(const std::vector<Example> & examples) {
    with_start_ = true;
    width_      = 0;
    size_t most = 0;
    for (const Example & example : examples) {
        for (const std::vector<int32_t> & tokens : results(example)) {
            most = std::max(most, tokens.size());
        }
    }
    width_ = most;
}

std::vector<std::string> StepTargets::texts(const Example & example) const {
    std::vector<std::string> all = step_results(task_, example);
    if (with_start_ && !all.empty()) {
        all.insert(all.begin(), chain_start(task_, example));
    }
    return all;
}

// At most one token a row of the memory.
std::vector<std::vector<int32_t>> StepTargets::results(const Example & example) const {
    std::vector<std::vector<int32_t>> all;
    for (const std::string & text : texts(example)) {
        std::vector<int32_t> tokens = tokenizer_.encode(text);
        tokens.resize(std::min(tokens.size(), size_t(n_rows_)));
        tokens.resize(std::max(tokens.size(), width_), tokenizer_.eos().value_or(0));
        all.push_back(std::move(tokens));
    }
    return all;
}

std::vector<int32_t> StepTargets::chain(const Example & example) const {
    std::vector<std::string> said = texts(example);
    if (said.size() > 1 && said[said.size() - 1] == said[said.size() - 2]) {
        said.pop_back();
    }
    std::vector<int32_t> all;
    for (const std::string & text : said) {
        const std::vector<int32_t> tokens = tokenizer_.encode(text);
        all.insert(all.end(), tokens.begin(), tokens.end());
    }
    return all;
}

std::vector<std::vector<int32_t>> StepTargets::tokens(const Example & example, int n_steps) const {
    std::vector<std::vector<int32_t>>       step_targets{ size_t(n_steps) };
    const std::vector<std::vector<int32_t>> all = results(example);
    for (size_t t = 0; !all.empty() && t < step_targets.size(); t++) {
        step_targets[t] = all[std::min(t, all.size() - 1)];
    }
    return step_targets;
}

} // namespace penelope
