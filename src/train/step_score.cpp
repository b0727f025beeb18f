#include "train/step_score.h"

#include <cmath>

namespace penelope {

namespace {

bool is_right(float loss) {
    return double(loss) < std::log(2.0);
}

// Latent steps that have something to say.
size_t n_supervised(const Minibatch & batch) {
    return batch.n_step_target_rows > 0 ? size_t(batch.n_steps) : 0;
}

} // namespace

std::vector<RightCount> right_answers(const Minibatch & batch, const BatchLoss & loss) {
    std::vector<RightCount> all;
    size_t                  next = 0;
    for (const TokenizedExample & example : batch.examples) {
        bool right = true;
        for (size_t i = 0; i < example.n_target(); i++) {
            right = is_right(loss.tokens[next++]) && right;
        }
        all.push_back({ example.is_supervised && right ? 1.0 : 0.0, example.is_supervised ? 1.0 : 0.0 });
    }
    return all;
}

std::vector<RightCount> right_steps(const Minibatch & batch, const BatchLoss & loss) {
    std::vector<RightCount> all(n_supervised(batch));
    size_t                  next = 0;
    for (size_t t = 0; t < all.size(); t++) {
        for (const TokenizedExample & example : batch.examples) {
            for (size_t i = 0; i < size_t(batch.n_step_target_rows); i++, next++) {
                if (example.n_forced == 0 && t < example.step_targets.size() && i < example.step_targets[t].size()) {
                    all[t].n_supervised_targets++;
                    all[t].n_right += is_right(loss.step_targets[next]);
                }
            }
        }
    }
    return all;
}

RightTable::RightTable(size_t n_depths, const Minibatch & batch) : answers_(n_depths), steps_(n_supervised(batch)) {}

RightTable::RightTable(size_t n_depths, const Minibatch & batch, const std::vector<double> & sums, size_t first)
    : RightTable(n_depths, batch) {
    for (std::vector<RightCount> * part : { &answers_, &steps_ }) {
        for (RightCount & count : *part) {
            count = { sums[first], sums[first + 1] };
            first += 2;
        }
    }
}

size_t RightTable::n_values(size_t n_depths, const Minibatch & batch) {
    return 2 * (n_depths + n_supervised(batch));
}

void RightTable::add_answer(size_t depth, RightCount count) {
    answers_[depth].n_right += count.n_right;
    answers_[depth].n_supervised_targets += count.n_supervised_targets;
}

void RightTable::add_steps(const std::vector<RightCount> & counts) {
    for (size_t t = 0; t < counts.size(); t++) {
        steps_[t].n_right += counts[t].n_right;
        steps_[t].n_supervised_targets += counts[t].n_supervised_targets;
    }
}

void RightTable::append_to(std::vector<double> & values) const {
    for (const std::vector<RightCount> * part : { &answers_, &steps_ }) {
        for (const RightCount & count : *part) {
            values.push_back(count.n_right);
            values.push_back(count.n_supervised_targets);
        }
    }
}

std::vector<double> RightTable::shares_of_steps() const {
    std::vector<double> shares;
    for (const RightCount & count : steps_) {
        shares.push_back(count.n_supervised_targets > 0 ? count.n_right / count.n_supervised_targets : -1);
    }
    return shares;
}

} // namespace penelope
