// What one update learns from: examples as tokens and the depth they are answered at.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace penelope {

struct TokenizedExample {
    std::vector<int32_t> prompt; // at least one token
    std::vector<int32_t> target; // at least one token; the end token is its last

    // What the memory should say after step t, thoughts[t - 1][i] being the token of its row i; empty: nothing is asked of it.
    std::vector<std::vector<int32_t>> step_targets  = {};
    bool                              is_supervised = true; // whether the target counts
    // Teacher forcing: the memory that enters steps 2 .. n_forced + 1 is a gold one, which holds what the step before should have said.
    int n_forced = 0;

    // Padding, see train/length_buckets.h: tokens at the front of the prompt and at the end of the target that are nobody's.
    int n_left_pad = 0, n_right_pad = 0;

    size_t n_target() const { return target.size() - size_t(n_right_pad); } // that are its own

    // For a method that has a teacher: the steps it writes before the same target, and the token of the target after which the
    // answer proper begins (-1: it begins at once).
    std::vector<int32_t> trace            = {};
    int                  distill_position = -1;
};

struct Minibatch {
    std::vector<TokenizedExample> examples;
    int                           n_steps = 0; // K, the same for all
    int    n_step_target_rows             = 0; // memory rows that have a token to say; 0: no step is supervised
    double step_loss_weight               = 0; // of the mean over thoughts beside the mean over targets
    // Targets and thoughts the losses are the means over, when these are a share of them.
    int target_normalizer      = 0;
    int step_target_normalizer = 0;

    bool                  has_teacher        = false;
    double                distill_weight     = 0; // of the student's distance from the teacher
    int                   teacher_normalizer = 0; // as above, of the tokens teachers write
    double                fraction = 1;   // of all examples, when these are a part of them: what its distance counts
    std::vector<uint32_t> global_indices; // of the examples among all, when these are a part of them

    int  n_examples() const { return int(examples.size()); }
    bool is_padded = false;

    int n_targets() const {
        size_t n = 0;
        for (const TokenizedExample & example : examples) {
            n += example.target.size();
        }
        return int(n);
    }
    // Tokens the teachers write.
    int n_teacher_tokens() const {
        size_t n = 0;
        for (const TokenizedExample & example : examples) {
            n += has_teacher ? example.trace.size() + example.target.size() : 0;
        }
        return int(n);
    }
    int n_labels() const { return n_targets() + n_step_targets() + n_teacher_tokens(); }
    // Rows of all steps that could say a token: step after step, sequence after sequence.
    int n_step_targets() const { return n_steps * n_examples() * n_step_target_rows; }

    int n_forced() const; // steps whose memory some example has replaced

    std::vector<int> left_padding() const; // rows in front of each example that are nobody's

    int n_supervised_targets() const;      // targets that count
    int n_supervised_step_targets() const; // thoughts with a token

    // What one target that counts and one token of a thought add to their means.
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
