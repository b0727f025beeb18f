// All settings of a training run. Runs with equal settings on equal files give bit-identical weights.
#pragma once

#include "base/json.h"
#include "task/choose_task.h"
#include "train/trained_model.h"
#include "train/validation.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

// Names, defaults and limits are in the table of train/setting_table.h; default_settings() there gives all of them.
struct TrainSettings {
    TrainModelOptions model;
    std::string       data;                   // directory with train.jsonl and valid.jsonl, or Coconut's .json
    std::string       out;                    // run folder
    std::string       name;                   // general.name of what is saved; empty: the run folder's
    std::string       shape_path;             // TOML of a backbone to make; model.base is then a file of the run folder
    int64_t           n_updates          = 0; // 0: by `epochs`, or as the protocol says for method and task
    int64_t           curriculum_updates = 0; // updates the stages are for, of a run made longer since; 0: n_updates
    double            epochs             = 0; // passes over the training data, when n_updates is 0
    int               batch_size         = 0; // examples of an update; 0: as the protocol says for the task
    int               latent_steps = -1; // K of the last stage; -1: as the protocol says, which is 0 for visible steps
    int               n_blocks     = 0;  // of the curriculum, by the depth; set by resolve_settings
    std::string       k_schedule;        // how K follows from the update, see train/curriculum.h
    double            advance_loss       = 0; // smoothed loss at which a stage ends; 0: fixed lengths
    double            step_loss          = 0; // weight of the step loss
    double            distill            = 0; // CODI: weight of the distillation loss
    double            step_loss_anneal   = 0; // share of the updates, at the end, over which that weight falls to 0
    double            backbone_lr        = 0; // of LoRA or backbone; 0: default of the method
    double            module_lr          = 1e-4;
    double            warmup             = 0; // share of the updates
    double            clip               = 0;
    int               max_length         = 0; // tokens of an example; 0: the model's context
    bool              skip_long          = false;
    bool              low_memory         = false; // no cached transposes, and activation checkpointing
    int64_t           eval_every         = 0;     // 0: at the end only
    int64_t           save_every         = 0;     // 0: at the end only
    int64_t           n_keep_checkpoints = 0;     // numbered checkpoints to keep
    ValidationOptions validation;

    double      teacher_forcing = 0; // share of examples whose memory is forced at first, see train/teacher_forcing.h
    std::string targets; // of visible steps: "steps", or "results", the chain of results alone (train/step_targets.h)
    bool        fit_modules = false; // the memory's GRU starts from a fit on visible steps, see train/fit_modules.h
    bool adaptive = false; // examples are drawn by the accuracy on their number of steps, see train/depth_sampler.h
};

// Resolves settings that are not set (numbers 0, latent_steps -1, empty strings): from the --init file if it has
// modules of the same method, else from the defaults of method and task. Checks the rest and returns the task. Throws
// Error(usage) naming a flag that contradicts another flag or the --init file.
TaskChoice resolve_settings(TrainSettings & settings, const ModelConfig & base, const std::vector<Example> & examples);

// Weight of the step loss at update 1 .. n_updates.
double step_loss_weight(const TrainSettings & settings, int64_t update);

// config.toml: keys are the long flags, so that --config can read the file.
std::string settings_toml(const TrainSettings & settings);

} // namespace penelope
