// The trained tensors as files others can use: a LoRA for llama.cpp, a sidecar, a plain backbone.
#pragma once

#include "train/trained_model.h"

#include <optional>
#include <string>

namespace penelope {

struct SavedMetadata {
    std::string         name;         // general.name
    std::string         train_config; // JSON
    std::string         eval_results; // JSON
    int                 k_default = 0;
    std::optional<bool> visible_steps; // see SidecarConfig
};

// A LoRA (method cot), a sidecar (latent methods; with the LoRA pairs unless all weights were trained) or the backbone (cot
// with all weights). Replaces `path`.
void save_model(const TrainedModel & model, const SavedMetadata & texts, const std::string & path);

// A sidecar and the backbone it was trained with, both on the disk before either replaces an older one.
void save_sidecar_and_backbone(const TrainedModel & model, const SavedMetadata & texts, const std::string & path,
                               const std::string & backbone);

} // namespace penelope
