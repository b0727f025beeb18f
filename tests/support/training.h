// What tests of training steps share: one thread, and the examples of a golden case as a minibatch.
#pragma once

#include "support/golden.h"
#include "train/minibatch.h"
#include "train/trained_model.h"

namespace penelope::test {

inline Backend & cpu() {
    static Backend instance(find_device("CPU"), 1);
    return instance;
}

inline Minibatch all_examples(const GoldenCase & golden, int n_steps) {
    Minibatch batch;
    batch.n_steps = n_steps;
    for (size_t i = 0; i < golden.json()["examples"].size(); i++) {
        batch.examples.push_back({ golden.prompt_ids(i), golden.target_ids(i) });
    }
    return batch;
}

// Goes on from the case's sidecar, or from its LoRA where the method has other modules.
inline ModelChoice choice_of(const GoldenCase & golden, const std::string & method) {
    ModelChoice choice;
    choice.base   = golden.backbone();
    choice.init   = method == "penelope" ? golden.sidecar() : golden.lora();
    choice.method = method;
    return choice;
}

} // namespace penelope::test
