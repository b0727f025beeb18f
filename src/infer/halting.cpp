#include "infer/halting.h"

namespace penelope {

LatentResult run_latent_steps(LatentSteps & steps, const std::vector<Prompt> & prompts, const HaltingPolicy & plan,
                              const LookCallback & look) {
    const bool                            halts = plan.cosine <= 1.0f;
    std::vector<int>                      all, active;
    std::vector<std::vector<StateTensor>> previous(prompts.size()); // of the step before
    steps.start(prompts);
    for (const Prompt & prompt : prompts) {
        all.push_back(prompt.stream);
    }
    for (size_t i = 0; i < all.size(); i++) {
        if ((!look || look(all[i])) && plan.max_steps > 0) {
            active.push_back(int(i));
        }
        if (halts) {
            previous[i] = steps.read_state(all[i]);
        }
    }
    while (!active.empty()) {
        std::vector<int> streams, further;
        for (int i : active) {
            streams.push_back(all[size_t(i)]);
        }
        steps.advance(streams);
        for (int i : active) {
            const int stream    = all[size_t(i)];
            bool      continues = steps.step(stream) < plan.max_steps;
            if (halts) {
                std::vector<StateTensor> now = steps.read_state(stream);
                continues &= !(readout_cosine(previous[size_t(i)], now) >= plan.cosine);
                previous[size_t(i)] = std::move(now);
            }
            if (look && !look(stream)) {
                continues = false;
            }
            if (continues) {
                further.push_back(i);
            }
        }
        active = std::move(further);
    }
    LatentResult latent;
    latent.prefilled = steps.finish(all);
    for (int stream : all) {
        latent.n_steps.push_back(steps.step(stream));
        latent.layer_applications.push_back(steps.layer_applications(stream));
    }
    return latent;
}

} // namespace penelope
