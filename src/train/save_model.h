// Writes the result of a run: a LoRA for llama.cpp, a sidecar, or a plain backbone.
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

// Writes a LoRA (method cot), a sidecar (latent methods; with LoRA pairs unless --full) or a backbone (cot with
// --full). Replaces `path`.
void save_model(const TrainedModel & model, const SavedMetadata & texts, const std::string & path);

// Writes a sidecar and its trained backbone. Both files are complete on disk before either replaces an older one.
void save_sidecar_and_backbone(const TrainedModel & model, const SavedMetadata & texts, const std::string & path,
                               const std::string & backbone);

} // namespace penelope
