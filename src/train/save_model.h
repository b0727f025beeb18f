// The trained tensors as files others can use: a LoRA for llama.cpp, a sidecar, a plain backbone.
#pragma once

#include "train/trained_model.h"

#include <optional>
#include <string>

namespace penelope {

struct SavedTexts {
    std::string         name;         // general.name
    std::string         train_config; // JSON
    std::string         eval_results; // JSON
    int                 k_default = 0;
    std::optional<bool> visible_steps; // see SidecarConfig
    std::string         base;          // the backbone a sidecar belongs to; empty: the one it was trained on
};

// A LoRA (method cot), a sidecar (latent methods; with the LoRA pairs unless all weights were trained) or the backbone (cot
// with all weights). Replaces `path`.
void save_model(const TrainedModel & model, const SavedTexts & texts, const std::string & path);

// The base with the trained weights in F32, as any llama.cpp program loads it; with the wording it answers to by itself.
// Replaces `path`.
void save_backbone(const TrainedModel & model, const std::string & name, const std::string & path,
                   const std::optional<Wording> & wording = std::nullopt);

} // namespace penelope
