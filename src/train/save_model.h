// The trained tensors as files others can use: a LoRA for llama.cpp, a sidecar, a plain backbone.
#pragma once

#include "train/trained_model.h"

#include <string>

namespace penelope {

struct SavedTexts {
    std::string name;         // general.name
    std::string train_config; // JSON
    std::string eval_results; // JSON
    int         k_default = 0;
};

// A LoRA (method cot), a sidecar (latent methods; with the LoRA pairs unless all weights were trained) or the backbone (cot
// with all weights). Replaces `path`.
void save_model(const TrainedModel & model, const SavedTexts & texts, const std::string & path);

// The base with the trained weights in F32, as any llama.cpp program loads it. Replaces `path`.
void save_backbone(const TrainedModel & model, const std::string & name, const std::string & path);

} // namespace penelope
