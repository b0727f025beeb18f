#include "train/setting_table.h"

#include "train/method_training.h"

namespace penelope {

namespace {

constexpr SettingKind flag    = SettingKind::flag;
constexpr SettingKind integer = SettingKind::integer;
constexpr SettingKind number  = SettingKind::number;
constexpr SettingKind text    = SettingKind::text;
constexpr SettingKind choice  = SettingKind::choice;

constexpr SettingUse weights = SettingUse::weights;
constexpr SettingUse scores  = SettingUse::scores;
constexpr SettingUse files   = SettingUse::files;
constexpr SettingUse none    = SettingUse::none;

constexpr const char * g_training  = "Training";
constexpr const char * g_data      = "Data";
constexpr const char * g_measuring = "Measuring";
constexpr const char * g_output    = "Output";

using S  = TrainSettings;
using At = SettingSlot;

bool is_latent(const TrainSettings & s) {
    return method_training(s.model.method).format() != nullptr;
}

bool has_pairs(const TrainSettings & s) {
    return !s.model.full;
}

// A size of the method's modules (sidecar/method_format.h); a method that has no such field leaves it out.
constexpr char interval[] = "interval", memory[] = "memory", readout[] = "readout", k_max[] = "k-max",
               time_width[] = "time-width", projection_width[] = "projection-width", adapter_width[] = "adapter-width",
               transition[] = "transition";

template <const char * name> bool has_field(const TrainSettings & s) {
    return has_flag(method_training(s.model.method).format(), name);
}

} // namespace

// clang-format off
const std::vector<SettingRow> & setting_table() {
    static const std::vector<SettingRow> table = {
        // Training.
        { "method", "", choice, "NAME", "", "cot|penelope|coconut|codi", g_training, weights,
          [](S & s) -> At { return &s.model.method; },
          "cot: supervised fine-tuning on the reasoning steps, which the others start from; penelope, coconut, "
          "codi: latent reasoning" },
        { "init", "", text, "FILE", "", "", g_training, weights, [](S & s) -> At { return &s.model.init; },
          "LoRA or sidecar to start from", nullptr, true },
        { "full", "", flag, "", "", "", g_training, weights, [](S & s) -> At { return &s.model.full; },
          "full fine-tuning of the backbone instead of LoRA" },
        { "init-random", "", text, "SHAPE.toml", "", "", g_training, weights,
          [](S & s) -> At { return &s.shape_path; },
          "start from a randomly initialized backbone of this shape; needs --full", nullptr, true },
        { "updates", "", integer, "N", "0", "0..", g_training, weights, [](S & s) -> At { return &s.n_updates; },
          "number of optimizer updates; 0: by --epochs, else the default of method and task" },
        { "epochs", "", number, "N", "0", "0..1000000", g_training, none, [](S & s) -> At { return &s.epochs; },
          "passes over the training data, instead of --updates" },
        { "batch-size", "", integer, "N", "0", "0..4096", g_training, weights,
          [](S & s) -> At { return &s.batch_size; },
          "batch size; 0: 4 (PrOntoQA 8)" },
        { "latent-steps", "-K", integer, "N", "", "0..1000", g_training, weights,
          [](S & s) -> At { return &s.latent_steps; },
          "number of latent steps K of the last stage (default 6; Coconut on Deep ListOps 8); 0: control without "
          "latent steps", is_latent },
        { "k-schedule", "", choice, "NAME", "staged", "staged|uniform|uniform-all|deep", g_training, weights,
          [](S & s) -> At { return &s.k_schedule; },
          "staged: K rises stage by stage as in the paper; uniform: K drawn from 1 to -K per update, loss only on "
          "answers reachable in K steps; uniform-all: the same, loss on all answers; deep: as uniform, with larger "
          "K more often", is_latent },
        { "advance-at", "", number, "LOSS", "0", "0..", g_training, weights,
          [](S & s) -> At { return &s.advance_loss; },
          "next stage when the smoothed loss is at most LOSS; 0: fixed stage lengths", is_latent },
        { "step-loss", "", number, "W", "0", "0..1000", g_training, weights, [](S & s) -> At { return &s.step_loss; },
          "weight of the step loss: each latent step has to predict the result of its gold step", is_latent },
        { "step-loss-anneal", "", number, "SHARE", "0", "0..1", g_training, weights,
          [](S & s) -> At { return &s.step_loss_anneal; },
          "fraction of the updates, at the end, over which the step-loss weight falls to 0", is_latent },
        { "teacher-forcing", "", number, "SHARE", "0", "0..1", g_training, weights,
          [](S & s) -> At { return &s.teacher_forcing; },
          "fraction of examples whose latent steps start from a gold memory with the result of the step before; "
          "falls to 0 over the second half of the updates; needs --step-loss", is_latent },
        { "targets", "", choice, "WHAT", "steps", "steps|results", g_training, weights,
          [](S & s) -> At { return &s.targets; },
          "steps: the model writes the steps; results: only their results, one after the other, so that the next "
          "result follows from the last one, as in latent steps" },
        { "fit-modules", "", flag, "", "", "", g_training, weights, [](S & s) -> At { return &s.fit_modules; },
          "start new modules from a fit on the results in the data, so that a latent step writes down what it says",
          is_latent },
        { "adaptive", "", flag, "", "", "", g_training, weights, [](S & s) -> At { return &s.adaptive; },
          "sample examples by the running accuracy at their number of gold steps: weight max(0.1, 1 - accuracy)" },
        { "distill", "", number, "W", "20", "0..1000000", g_training, weights, [](S & s) -> At { return &s.distill; },
          "CODI: weight of the distillation loss", is_latent },
        { "lr", "", text, "BACKBONE,MODULES", "", "", g_training, weights,
          [](S & s) -> At { return std::pair(&s.backbone_lr, &s.module_lr); },
          "learning rates: LoRA or backbone, modules (default 1e-4 for cot, else 2e-5,1e-4)" },
        { "warmup", "", number, "SHARE", "0.05", "0..1", g_training, weights, [](S & s) -> At { return &s.warmup; },
          "fraction of the updates for linear learning-rate warmup" },
        { "clip", "", number, "NORM", "1", "0..", g_training, weights, [](S & s) -> At { return &s.clip; },
          "gradient clipping: maximum global norm; 0: off" },
        { "weight-decay", "", number, "W", "0.01", "0..", g_training, weights,
          [](S & s) -> At { return &s.model.weight_decay; },
          "AdamW weight decay, matrices only" },
        { "beta2", "", number, "B", "0.999", "0..0.999999", g_training, weights,
          [](S & s) -> At { return &s.model.beta2; },
          "AdamW beta2; 0.99 suits runs of a few hundred updates" },
        { "dropout", "", number, "P", "0.05", "0..0.99", g_training, weights,
          [](S & s) -> At { return &s.model.dropout; },
          "LoRA dropout", has_pairs },
        { "lora-rank", "", integer, "R", "16", "1..4096", g_training, weights,
          [](S & s) -> At { return &s.model.lora_rank; },
          "rank of new LoRA pairs", has_pairs },
        { "lora-alpha", "", number, "A", "32", "0.001..1000000", g_training, weights,
          [](S & s) -> At { return &s.model.lora_alpha; },
          "LoRA alpha (scale is alpha / rank)", has_pairs },
        { "interval", "", text, "S:E", "", "", g_training, weights,
          [](S & s) -> At { return std::pair(&s.model.sidecar.interval_start, &s.model.sidecar.interval_end); },
          "layers S to E-1 that a latent step runs (default: the upper 5/16)", has_field<interval> },
        { "memory", "", integer, "M", "0", "0..1024", g_training, weights,
          [](S & s) -> At { return &s.model.sidecar.n_memory; },
          "number of memory vectors; 0: 8", has_field<memory> },
        { "readout", "", integer, "Q", "0", "0..1024", g_training, weights,
          [](S & s) -> At { return &s.model.sidecar.n_readout; },
          "number of readout vectors; 0: 2", has_field<readout> },
        { "k-max", "", integer, "K", "0", "0..1000", g_training, weights,
          [](S & s) -> At { return &s.model.sidecar.k_max; },
          "largest K the modules are built for; 0: 8", has_field<k_max> },
        { "time-width", "", integer, "N", "0", "0..1048576", g_training, weights,
          [](S & s) -> At { return &s.model.sidecar.time_width; },
          "hidden width of the time network; 0: half the model's width", has_field<time_width> },
        { "projection-width", "", integer, "N", "0", "0..1048576", g_training, weights,
          [](S & s) -> At { return &s.model.sidecar.projection_width; },
          "hidden width of CODI's projection; 0: the model's width", has_field<projection_width> },
        { "adapter-width", "", integer, "N", "0", "0..1048576", g_training, weights,
          [](S & s) -> At { return &s.model.sidecar.adapter_width; },
          "hidden width of the memory adapter; 0: an eighth of the model's width", has_field<adapter_width> },
        { "transition", "", choice, "NAME", "", "gru|overwrite", g_training, weights,
          [](S & s) -> At { return &s.model.sidecar.transition; },
          "memory update: gru (default), or overwrite (control)", has_field<transition> },
        { "seed", "-s", integer, "S", "0", "0..", g_training, weights, [](S & s) -> At { return &s.model.seed; },
          "seed of initialization, shuffling and dropout" },
        { "recompute", "", flag, "", "", "", g_training, weights, [](S & s) -> At { return &s.model.recompute; },
          "activation checkpointing: about a third slower, a fraction of the memory" },
        { "low-memory", "", flag, "", "", "", g_training, weights, [](S & s) -> At { return &s.low_memory; },
          "activation checkpointing, and no cached transposes of frozen weights" },
        // Data.
        { "match", "", choice, "HOW", "", "exact|number|choice", g_data, scores,
          [](S & s) -> At { return &s.model.sidecar.match; },
          "how answers of the generic task are compared: whole text (default), first number, or which known answer "
          "they start with" },
        { "data", "", text, "DIR", "", "", g_data, weights, [](S & s) -> At { return &s.data; },
          "directory with train.jsonl and valid.jsonl (or .json, .csv)", nullptr, true },
        { "task", "", choice, "NAME", "", "listops|prosqa|prontoqa|thread|generic", g_data, weights,
          [](S & s) -> At { return &s.model.sidecar.task; },
          "task, which decides how answers are parsed (default: recognized by the questions, else generic)" },
        { "prompt-template", "", text, "TEXT", "", "", g_data, weights,
          [](S & s) -> At { return &s.model.sidecar.prompt_template; },
          "prompt with {question} in it (default: {question} and a newline)" },
        { "answer-prefix", "", text, "TEXT", "", "", g_data, weights,
          [](S & s) -> At { return &s.model.sidecar.answer_prefix; },
          "text before the answer (default: ### and a space)" },
        { "max-length", "", integer, "N", "0", "0..16777216", g_data, weights,
          [](S & s) -> At { return &s.max_length; },
          "maximum length of an example in tokens; 0: the model's context" },
        { "skip-long", "", flag, "", "", "", g_data, weights, [](S & s) -> At { return &s.skip_long; },
          "drop examples longer than that instead of failing" },
        // Measuring.
        { "eval-every", "", integer, "N", "100", "0..", g_measuring, scores,
          [](S & s) -> At { return &s.eval_every; },
          "updates between validations; 0: only at the end" },
        { "eval-limit", "", integer, "N", "200", "0..", g_measuring, scores,
          [](S & s) -> At { return &s.validation.limit; },
          "examples per validation; 0: all. The final choice of K always uses all" },
        { "predict", "-n --n-predict", integer, "N", "0", "0..1048576", g_measuring, scores,
          [](S & s) -> At { return &s.validation.n_predict; },
          "maximum number of new tokens of an answer; 0: 32 (cot 256)" },
        { "kv-type", "-ctk --cache-type-k", choice, "TYPE", "f32", "f16|bf16|f32|q8_0", g_measuring, scores,
          [](S & s) -> At { return &s.validation.kv_type; },
          "type of the KV cache in validation" },
        // Output.
        { "name", "", text, "TEXT", "", "", g_output, files, [](S & s) -> At { return &s.name; },
          "model name written to the file (default: name of the run folder)" },
        { "save-every", "", integer, "N", "100", "0..", g_output, files, [](S & s) -> At { return &s.save_every; },
          "updates between checkpoints; 0: only at the end" },
        { "keep-checkpoints", "", integer, "N", "0", "0..1000000", g_output, files,
          [](S & s) -> At { return &s.n_keep_checkpoints; },
          "keep the newest N as checkpoint/update-U.gguf; 0: only the last two" }, };
return table;
}
// clang-format on

const SettingRow * find_setting(const std::string & name) {
    for (const SettingRow & row : setting_table()) {
        if (name == row.name) {
            return &row;
        }
    }
    return nullptr;
}

TrainSettings default_settings() {
    TrainSettings settings;
    for (const SettingRow & row : setting_table()) {
        const SettingSlot place = row.slot(settings);
        if (*row.fallback != '\0') {
            set_setting(row, settings, row.fallback);
        } else if (std::string * const * open = std::get_if<std::string *>(&place)) {
            (*open)->clear(); // a sidecar's config begins with texts of its own
        }
    }
    return settings;
}

} // namespace penelope
