// What one update learns from: examples as tokens and the depth they are answered at.
#pragma once

#include <cstdint>
#include <vector>

namespace penelope {

struct TokenizedExample {
    std::vector<int32_t> prompt; // at least one token
    std::vector<int32_t> target; // at least one token; the end token is its last
};

struct Minibatch {
    std::vector<TokenizedExample> examples;
    int                           n_steps   = 0; // K, the same for all
    int                           n_divisor = 0; // targets the loss is the mean over, when these are a share of them

    int n_examples() const { return int(examples.size()); }
    int n_targets() const {
        size_t n = 0;
        for (const TokenizedExample & example : examples) {
            n += example.target.size();
        }
        return int(n);
    }
    // What one target counts in the loss.
    double target_weight() const { return 1.0 / double(n_divisor > 0 ? n_divisor : n_targets()); }
};

} // namespace penelope
