#include "infer/thinking.h"

namespace penelope {

Thought think(LatentSteps & steps, const std::vector<Prompt> & prompts, const ThinkingPlan & plan,
              const LookCallback & look) {
    const bool                            halts = plan.settled <= 1.0f;
    std::vector<int>                      all, thinking;
    std::vector<std::vector<StateTensor>> held(prompts.size()); // of the step before
    steps.start(prompts);
    for (const Prompt & prompt : prompts) {
        all.push_back(prompt.stream);
    }
    for (size_t i = 0; i < all.size(); i++) {
        if ((!look || look(all[i])) && plan.n_most > 0) {
            thinking.push_back(int(i));
        }
        if (halts) {
            held[i] = steps.look(all[i]);
        }
    }
    while (!thinking.empty()) {
        std::vector<int> streams, further;
        for (int i : thinking) {
            streams.push_back(all[size_t(i)]);
        }
        steps.advance(streams);
        for (int i : thinking) {
            const int stream  = all[size_t(i)];
            bool      goes_on = steps.step(stream) < plan.n_most;
            if (halts) {
                std::vector<StateTensor> now = steps.look(stream);
                goes_on &= !(readout_cosine(held[size_t(i)], now) >= plan.settled);
                held[size_t(i)] = std::move(now);
            }
            if (look && !look(stream)) {
                goes_on = false;
            }
            if (goes_on) {
                further.push_back(i);
            }
        }
        thinking = std::move(further);
    }
    Thought thought;
    thought.filled = steps.finish(all);
    for (int stream : all) {
        thought.n_steps.push_back(steps.step(stream));
        thought.layer_applications.push_back(steps.layer_applications(stream));
    }
    return thought;
}

} // namespace penelope
