// What tests of training steps share: one thread (support/cpu.h), and the examples of a golden case as a minibatch.
#pragma once

#include "support/cpu.h"
#include "support/golden.h"
#include "train/curriculum.h"
#include "train/minibatch.h"
#include "train/trained_model.h"
#include "train/training_data.h"

namespace penelope::test {

inline Minibatch all_examples(const GoldenCase & golden, int n_steps) {
    Minibatch batch;
    batch.n_steps = n_steps;
    for (size_t i = 0; i < golden.json()["examples"].size(); i++) {
        batch.examples.push_back({ golden.prompt_ids(i), golden.target_ids(i) });
    }
    return batch;
}

// CODI's examples of a golden case ("last" has them), from their texts: each with the steps its teacher writes.
inline Minibatch taught_examples(const GoldenCase & golden, const Tokenizer & tokenizer, int n_steps) {
    const Json           json = read_json_file(golden.source("codi.json"));
    std::vector<Example> examples;
    for (const Json & example : json["examples"]) {
        examples.push_back({ "", example["question"], example["steps"], example["answer"] });
    }
    const TrainingData data(examples, tokenizer, { "{question}\n", "The answer is: " });
    Minibatch          batch;
    batch.n_steps         = n_steps;
    batch.has_teacher     = true;
    batch.distance_weight = 20;
    for (size_t i = 0; i < data.size(); i++) {
        batch.examples.push_back(data.with_teacher(i, kAnswerOnly));
    }
    return batch;
}

// Goes on from the case's sidecar for the method, or from its LoRA where the modules are given otherwise.
inline ModelChoice choice_of(const GoldenCase & golden, const std::string & method) {
    ModelChoice choice;
    choice.base   = golden.backbone();
    choice.init   = method == "penelope" ? golden.sidecar() : method == "codi" ? golden.codi_sidecar() : golden.lora();
    choice.method = method;
    return choice;
}

} // namespace penelope::test
