// How each method is trained, one entry per method a run can be asked for: its objective, the shape of its modules where
// nobody says, and what the comparison of methods fixes for it. The trainer asks here and never by name.
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
    const char * name;
    // The stage the latent methods start from: counted in epochs, at its own rate, with room for a trace in the answer.
    bool is_cot_stage;
    // Each stage of the curriculum starts averaging anew.
    bool resets_optimizer;
    // Targets lose their steps stage by stage; else there is one stage, at the last depth.
    bool has_curriculum;
    // Learns beside a teacher that writes the steps.
    bool has_teacher;
    // What answers begin with; null: as the task says.
    const char * answer_prefix;

    // Depth of the last stage unless one is given.
    int (*default_latent_steps)(const Task & task);
    // Fills the fields of its format with what they are where neither flags nor a file say; `depth` is that of the run.
    void (*default_shape)(SidecarConfig & config, const ModelConfig & base, int depth);
    std::unique_ptr<Objective> (*objective)(const SidecarConfig & config, const ModuleNodes & nodes);

    // Its objective gives the states of the latent steps too, for a loss on each.
    bool supports_step_loss = false;

    // What its file holds beside LoRA pairs; null: nothing, the file is a plain LoRA or backbone.
    const MethodFormat * format() const { return find_method_format(name); }
};

std::vector<std::string> trainable_methods();
// Throws Error(usage) naming the known ones.
const MethodTraining & method_training(const std::string & name);

} // namespace penelope
