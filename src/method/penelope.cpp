#include "method/penelope.h"

#include "method/penelope_steps.h"

#include <numeric>

namespace penelope {

PenelopeMethod::PenelopeMethod(const PenelopeModules & modules, const LatentShape & shape, std::vector<TimeStep> steps,
                               int k_default)
    : modules_(modules), shape_(shape), steps_(std::move(steps)), k_default_(k_default) {}

LatentSteps * PenelopeMethod::steps(Context & context) const {
    return &context.extension<PenelopeSteps>(this, [&]() { return std::make_unique<PenelopeSteps>(*this, context); });
}

// Boundary, prompt cache and refinements once, a final pass for each K.
void PenelopeMethod::sweep(Context & context, const std::vector<Tokens> & prompts, const std::vector<int> & steps,
                           const std::function<void(int, const Prefill &)> & answer) const {
    LatentSteps &    steps_of = *this->steps(context);
    std::vector<int> streams(prompts.size());
    std::iota(streams.begin(), streams.end(), 0);
    steps_of.start(fresh_prompts(prompts));
    std::vector<std::vector<StateTensor>> before(prompts.size());
    int                                   t = 0;
    for (int k : steps) {
        for (; t < k; t++) {
            for (int stream : streams) {
                before[size_t(stream)] = steps_of.read_state(stream);
            }
            steps_of.advance(streams);
        }
        Prefill prefilled = steps_of.finish(streams);
        for (int stream : streams) {
            prefilled.step_cosine.push_back(t > 0 ? readout_cosine(before[size_t(stream)], steps_of.read_state(stream))
                                                  : -1.0f);
        }
        answer(k, prefilled);
    }
}

} // namespace penelope
