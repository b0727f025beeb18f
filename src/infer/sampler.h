// Turns a row of logits into a token. Penalties on what the answer already said come first. Then greedy, unless a
// temperature is given: top-k, top-p, min-p, temperature, one draw from a seeded generator, in this order.
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
    // On tokens among the last penalty_window of the answer, -1: all of it. The prompt does not count: its control
    // tokens would be the first to suffer.
    float repeat_penalty    = 1.0f; // divides a logit above 0, multiplies one below; 1: off
    float presence_penalty  = 0.0f; // subtracted from the logit once; 0: off
    float frequency_penalty = 0.0f; // count times this is subtracted from the logit; 0: off
    int   penalty_window    = 64;
};

// Throws Error(usage) naming the option that is out of range.
void check_sampling(const SamplingOptions & options);

class Sampler {
  public:
    explicit Sampler(const SamplingOptions & options);
    // logits: n_vocab values. Entries of -inf are never chosen.
    int32_t sample(const float * logits, int n_vocab);
    void    accept(int32_t token); // it became part of the answer

  private:
    struct Candidate {
        float   logit;
        int32_t id;
        double  weight;
    };
    // Ties are broken by id, so that the order does not depend on how equals are moved.
    struct Better {
        bool operator()(const Candidate & a, const Candidate & b) const {
            return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
        }
    };
    size_t        place_reaching(double target);
    const float * penalized(const float * logits, int n_vocab);

    SamplingOptions        options_;
    std::vector<int32_t>   history_;
    std::vector<float>     penalized_;
    uint64_t               n_drawn_ = 0;
    std::vector<Candidate> candidates_;
};

} // namespace penelope
