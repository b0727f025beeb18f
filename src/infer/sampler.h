// Turns a row of logits into a token. Greedy unless a temperature is given; then, in this order: top-k, top-p, min-p,
// temperature, one draw from a seeded generator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

struct SamplingOptions {
    float    temperature = 0.0f;  // 0: greedy
    int      top_k       = 40;    // 0: off
    float    top_p       = 0.95f; // 1: off
    float    min_p       = 0.05f; // 0: off
    uint64_t seed        = 0;
};

// Throws Error(usage) naming the option that is out of range.
void check_sampling(const SamplingOptions & options);

class Sampler {
  public:
    explicit Sampler(const SamplingOptions & options);
    // logits: n_vocab values. Entries of -inf are never chosen.
    int32_t sample(const float * logits, int n_vocab);

  private:
    SamplingOptions                        options_;
    uint64_t                               n_drawn_ = 0;
    std::vector<std::pair<float, int32_t>> candidates_;
};

} // namespace penelope
