#include "method/latent_steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace penelope {

namespace {

constexpr int kBucket = 64; // n_kv is rounded up to a multiple of this

double dot(const float * a, const float * b, int64_t n) {
    return std::inner_product(a, a + n, b, 0.0);
}

} // namespace

LatentSteps::LatentSteps(const Method & method, Context & context)
    : context_(context), method_base_(method), streams_(size_t(context.options().n_streams)) {}

void LatentSteps::begin(const std::vector<Prompt> & prompts) {
    for (const Prompt & prompt : prompts) {
        at(prompt.stream) = { int(prompt.tokens.size()), 0, 0, 0 };
    }
}

void LatentSteps::start(const std::vector<Prompt> & prompts) {
    begin(prompts);
    const std::vector<int> streams = streams_of(prompts);
    const PassResult       result  = run({ streams, prompts, 0, false });
    for (int stream : streams) {
        at(stream).n_step_applications = result.layer_applications;
    }
}

void LatentSteps::advance(const std::vector<int> & streams) {
    if (streams.empty()) {
        return;
    }
    const PassResult result = run({ streams, {}, 1, false });
    for (int stream : streams) {
        at(stream).t++;
        at(stream).n_step_applications += result.layer_applications;
    }
}

Prefill LatentSteps::finish(const std::vector<int> & streams) {
    return finished(streams, run({ streams, {}, 0, true }));
}

Prefill LatentSteps::prefill(const std::vector<Prompt> & prompts, int n_steps) {
    begin(prompts);
    const std::vector<int> streams = streams_of(prompts);
    PassResult             result  = run({ streams, prompts, n_steps, true });
    for (int stream : streams) {
        at(stream).t = n_steps;
    }
    return finished(streams, std::move(result));
}

Prefill LatentSteps::finished(const std::vector<int> & streams, PassResult result) {
    Prefill prefilled;
    prefilled.logits = std::move(result.logits);
    for (int stream : streams) {
        at(stream).n_final = result.layer_applications;
        prefilled.n_past.push_back(at(stream).n_prompt + method_base_.n_extra_rows(at(stream).t));
        prefilled.layer_applications = std::max(prefilled.layer_applications, layer_applications(stream));
    }
    return prefilled;
}

std::vector<SeqRange> LatentSteps::rounded_ranges(const std::vector<int> &               streams,
                                                  const std::function<int(int stream)> & row, int count) const {
    std::vector<SeqRange> ranges;
    int                   n_seen = 0;
    for (int stream : streams) {
        ranges.push_back({ stream, row(stream), count });
        n_seen = std::max(n_seen, ranges.back().row + count);
    }
    for (SeqRange & range : ranges) {
        range.n_kv = std::min((n_seen + kBucket - 1) / kBucket * kBucket, context_.n_ctx());
    }
    return ranges;
}

std::vector<int> streams_of(const std::vector<Prompt> & prompts) {
    std::vector<int> streams;
    for (const Prompt & prompt : prompts) {
        streams.push_back(prompt.stream);
    }
    return streams;
}

float readout_cosine(const std::vector<StateTensor> & before, const std::vector<StateTensor> & now) {
    const StateTensor * a = find_state(before, "R");
    const StateTensor * b = find_state(now, "R");
    if (!a || !b) {
        return -1.0f;
    }
    const int64_t d     = b->shape[1];
    double        least = 1.0;
    for (int64_t row = 0; row < b->shape[0]; row++) {
        const float * x     = a->data.data() + row * d;
        const float * y     = b->data.data() + row * d;
        const double  norms = std::sqrt(dot(x, x, d) * dot(y, y, d));
        const double  turn  = norms > 0 ? dot(x, y, d) / norms : -1.0;
        least               = turn >= least ? least : turn; // also for NaN
    }
    return float(least);
}

} // namespace penelope
