// Learning-rate schedule: linear warmup, then a cosine that would reach 0 one update after the last.
#pragma once

#include <cstdint>

namespace penelope {

// Factor of the learning rate at update i = 1 .. n_updates:
//   i / n_warmup                                                   for i <= n_warmup
//   (1 + cos(pi (i - n_warmup) / (n_updates - n_warmup + 1))) / 2  after it
// Above 0 for every update, as the last update of PyTorch's and transformers' cosine schedules is.
double lr_factor(int64_t update, int64_t n_updates, int64_t n_warmup);

// Number of warmup updates, rounded up: 5 % of 4 is 1.
int64_t warmup_updates(int64_t n_updates, double share);

} // namespace penelope
