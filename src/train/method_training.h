// Table of the trainable methods: objective, default shape of the modules, and the choices the paper's comparison fixes
// for each. The trainer looks settings up here instead of comparing method names.
#pragma once

#include "arch/config.h"
#include "sidecar/load_modules.h"
#include "sidecar/method_format.h"
#include "task/task.h"
#include "train/objective.h"

#include <memory>
#include <string>
#include <vector>

namespace penelope {

struct MethodTraining {
    const char * name = nullptr;
    // CoT fine-tuning, which the latent methods start from: length in epochs, its own learning rate, longer answers.
    bool is_cot_stage = false;
    // AdamW moments are reset at the start of each stage.
    bool resets_optimizer = false;
    // Steps are removed from the target stage by stage; else there is one stage at the full K.
    bool has_curriculum = false;
    // Distillation from a teacher that writes the steps.
    bool has_teacher = false;
    // Answer prefix; null: that of the task.
    const char * answer_prefix = nullptr;

    // Default K of the last stage.
    int (*default_latent_steps)(const Task & task) = nullptr;
    // Sets the default shape of the modules, used where neither a flag nor the --init file gives one; `depth` is K.
    void (*default_shape)(SidecarConfig & config, const ModelConfig & base, int depth)               = nullptr;
    std::unique_ptr<Objective> (*objective)(const SidecarConfig & config, const ModuleNodes & nodes) = nullptr;

    // The objective also returns the states of the latent steps, for the step loss.
    bool supports_step_loss = false;

    // Sidecar format of the method; null: the result is a plain LoRA or backbone.
    const MethodFormat * format() const { return find_method_format(name); }
};

std::vector<std::string> trainable_methods();
// Throws Error(usage) listing the known methods.
const MethodTraining & method_training(const std::string & name);

} // namespace penelope
