// One minibatch: tokenized examples with their loss masks and padding, and the number of latent steps K.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace penelope {

struct TokenizedExample {
    std::vector<int32_t> prompt; // at least one token
    std::vector<int32_t> target; // at least one token; the last is EOS

    // Step loss: step_targets[t - 1][i] is the token that memory row i has to predict after step t; empty: no target.
    std::vector<std::vector<int32_t>> step_targets  = {};
    bool                              is_supervised = true; // false: the target is masked out of the loss
    // Teacher forcing: the memory that enters steps 2 .. n_forced + 1 is a gold memory with the target of the step
    // before.
    int n_forced = 0;

    // Padding tokens at the start of the prompt and at the end of the target, see train/length_buckets.h.
    int n_left_pad = 0, n_right_pad = 0;

    size_t n_target() const { return target.size() - size_t(n_right_pad); } // without padding

    // CODI: the steps that the teacher writes before the target, and the index of the target token before the first
    // answer token (-1: the target starts with the answer).
    std::vector<int32_t> trace            = {};
    int                  distill_position = -1;
};

struct Minibatch {
    std::vector<TokenizedExample> examples;
    int                           n_steps            = 0; // K, the same for all
    int                           n_step_target_rows = 0; // memory rows with step targets; 0: no step loss
    double                        step_loss_weight   = 0; // weight of the mean step loss
    // For a shard: number of supervised target tokens and step targets of the whole minibatch. 0: not a shard.
    int target_normalizer      = 0;
    int step_target_normalizer = 0;

    bool   has_teacher        = false;
    double distill_weight     = 0; // weight of the distillation loss
    int    teacher_normalizer = 0; // as above, for teacher tokens
    double fraction           = 1; // for a shard: its fraction of the examples, the weight of its distillation loss
    std::vector<uint32_t> global_indices; // for a shard: indices of its examples in the whole minibatch

    int  n_examples() const { return int(examples.size()); }
    bool is_padded = false;

    int n_targets() const {
        size_t n = 0;
        for (const TokenizedExample & example : examples) {
            n += example.target.size();
        }
        return int(n);
    }
    // Tokens the teachers predict.
    int n_teacher_tokens() const {
        size_t n = 0;
        for (const TokenizedExample & example : examples) {
            n += has_teacher ? example.trace.size() + example.target.size() : 0;
        }
        return int(n);
    }
    int n_labels() const { return n_targets() + n_step_targets() + n_teacher_tokens(); }
    // Memory rows with a possible step target, over all steps and sequences.
    int n_step_targets() const { return n_steps * n_examples() * n_step_target_rows; }

    int n_forced() const; // steps at which some example uses a gold memory

    std::vector<int> left_padding() const; // of each example

    int n_supervised_targets() const;      // tokens in the loss
    int n_supervised_step_targets() const; // tokens in the step loss

    // Loss weight of one supervised token of each kind: 1 / number of such tokens.
    double target_weight() const {
        return 1.0 / std::max(1, target_normalizer > 0 ? target_normalizer : n_supervised_targets());
    }
    double teacher_token_weight() const {
        return 1.0 / std::max(1, teacher_normalizer > 0 ? teacher_normalizer : n_teacher_tokens());
    }
    double step_target_weight() const {
        return 1.0 / std::max(1, step_target_normalizer > 0 ? step_target_normalizer : n_supervised_step_targets());
    }
};

inline std::vector<int> Minibatch::left_padding() const {
    std::vector<int> all;
    for (const TokenizedExample & example : examples) {
        all.push_back(example.n_left_pad);
    }
    return all;
}

inline int Minibatch::n_forced() const {
    int most = 0;
    for (const TokenizedExample & example : examples) {
        most = std::max(most, example.n_forced);
    }
    return std::min(most, std::max(0, n_steps - 1));
}

inline int Minibatch::n_supervised_targets() const {
    size_t n = 0;
    for (const TokenizedExample & example : examples) {
        n += example.is_supervised ? example.n_target() : 0;
    }
    return int(n);
}

inline int Minibatch::n_supervised_step_targets() const {
    size_t n = 0;
    for (const TokenizedExample & example : examples) {
        for (size_t t = 0; t < std::min(example.step_targets.size(), size_t(n_steps)); t++) {
            n += std::min(example.step_targets[t].size(), size_t(n_step_target_rows));
        }
    }
    return int(n);
}

} // namespace penelope
