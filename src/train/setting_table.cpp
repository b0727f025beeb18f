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
          "cot: visible chain of thought, the source of the others; penelope, coconut, codi: latent steps" },
        { "init", "", text, "FILE", "", "", g_training, weights, [](S & s) -> At { return &s.model.init; },
          "LoRA or sidecar to continue", nullptr, true },
        { "full", "", flag, "", "", "", g_training, weights, [](S & s) -> At { return &s.model.full; },
          "train all weights of the backbone instead of LoRA" },
        { "init-random", "", text, "SHAPE.toml", "", "", g_training, weights,
          [](S & s) -> At { return &s.shape_path; },
          "start from a new small backbone of this shape instead of -m; needs --full", nullptr, true },
        { "updates", "", integer, "N", "0", "0..", g_training, weights, [](S & s) -> At { return &s.n_updates; },
          "optimizer steps; 0: as --epochs says, else 1500 (PrOntoQA 3000) for latent methods and 3, 1 or 2 "
          "epochs of Deep ListOps, ProsQA or PrOntoQA for cot" },
        { "epochs", "", number, "N", "0", "0..1000000", g_training, none, [](S & s) -> At { return &s.epochs; },
          "passes over the training data, instead of --updates" },
        { "batch-size", "", integer, "N", "0", "0..4096", g_training, weights, [](S & s) -> At { return &s.batch_size; },
          "examples of an update; 0: 4 (PrOntoQA 8)" },
        { "latent-steps", "-K", integer, "N", "", "0..1000", g_training, weights, [](S & s) -> At { return &s.latent_steps; },
          "latent steps of the last stage (default 6, Coconut on Deep ListOps 8); 0: the same targets without "
          "latent steps", is_latent },
        { "k-schedule", "", choice, "NAME", "staged", "staged|uniform|uniform-all", g_training, weights,
          [](S & s) -> At { return &s.k_schedule; },
          "staged: K rises block by block as in the paper; uniform: each update draws K from 1 to --latent-steps "
          "and asks for the answers that K steps and the final pass can reach; uniform-all: the same, asking for all",
          is_latent },
        { "advance-at", "", number, "LOSS", "0", "0..", g_training, weights, [](S & s) -> At { return &s.advance_loss; },
          "a stage lasts until its smoothed loss is at most this, on targets and on steps; with a drawn K its "
          "largest value rises likewise; 0: as planned", is_latent },
        { "step-loss", "", number, "W", "0", "0..1000", g_training, weights, [](S & s) -> At { return &s.step_loss; },
          "weight of a loss on what the memory says at each latent step, against the result of the gold step",
          is_latent },
        { "step-loss-anneal", "", number, "SHARE", "0", "0..1", g_training, weights,
          [](S & s) -> At { return &s.step_loss_anneal; },
          "share of the updates, at the end, over which that weight falls to 0", is_latent },
        { "teacher-forcing", "", number, "SHARE", "0", "0..1", g_training, weights,
          [](S & s) -> At { return &s.teacher_forcing; },
          "share of examples whose latent steps start from a gold memory, which holds what the step before should "
          "have said; falls to 0 over the second half of the updates; needs --step-loss", is_latent },
        { "adaptive", "", flag, "", "", "", g_training, weights, [](S & s) -> At { return &s.adaptive; },
          "draw examples by how well their number of gold steps is answered so far: weight max(0.1, 1 - accuracy)" },
        { "distill", "", number, "W", "20", "0..1000000", g_training, weights, [](S & s) -> At { return &s.distill; },
          "CODI: weight of the distance between the states of student and teacher", is_latent },
        { "lr", "", text, "BACKBONE,MODULES", "", "", g_training, weights,
          [](S & s) -> At { return std::pair(&s.backbone_lr, &s.module_lr); },
          "learning rates of LoRA or backbone and of the modules (default 1e-4 for cot, else 2e-5,1e-4)" },
        { "warmup", "", number, "SHARE", "0.05", "0..1", g_training, weights, [](S & s) -> At { return &s.warmup; },
          "share of the updates over which the rates rise; then they fall along a cosine" },
        { "clip", "", number, "NORM", "1", "0..", g_training, weights, [](S & s) -> At { return &s.clip; },
          "largest norm of all gradients together; 0: none" },
        { "weight-decay", "", number, "W", "0.01", "0..", g_training, weights,
          [](S & s) -> At { return &s.model.weight_decay; },
          "of matrices, decoupled" },
        { "beta2", "", number, "B", "0.999", "0..0.999999", g_training, weights,
          [](S & s) -> At { return &s.model.beta2; },
          "decay of the second moments: smaller ones suit short runs" },
        { "dropout", "", number, "P", "0.05", "0..0.99", g_training, weights,
          [](S & s) -> At { return &s.model.dropout; },
          "of what the LoRA pairs read", has_pairs },
        { "lora-rank", "", integer, "R", "16", "1..4096", g_training, weights,
          [](S & s) -> At { return &s.model.lora_rank; },
          "rank of new pairs", has_pairs },
        { "lora-alpha", "", number, "A", "32", "0.001..1000000", g_training, weights,
          [](S & s) -> At { return &s.model.lora_alpha; },
          "scale of new pairs is alpha / rank", has_pairs },
        { "interval", "", text, "S:E", "", "", g_training, weights,
          [](S & s) -> At { return std::pair(&s.model.sidecar.interval_start, &s.model.sidecar.interval_end); },
          "layers S to E-1 that latent steps repeat (default: the upper 5 of 16, in proportion)", has_field<interval> },
        { "memory", "", integer, "M", "0", "0..1024", g_training, weights,
          [](S & s) -> At { return &s.model.sidecar.n_memory; },
          "memory positions; 0: 8", has_field<memory> },
        { "readout", "", integer, "Q", "0", "0..1024", g_training, weights,
          [](S & s) -> At { return &s.model.sidecar.n_readout; },
          "readout positions; 0: 2", has_field<readout> },
        { "k-max", "", integer, "K", "0", "0..1000", g_training, weights,
          [](S & s) -> At { return &s.model.sidecar.k_max; },
          "most latent steps the modules can take; 0: 8", has_field<k_max> },
        { "time-width", "", integer, "N", "0", "0..1048576", g_training, weights,
          [](S & s) -> At { return &s.model.sidecar.time_width; },
          "width of the time network; 0: half the model's", has_field<time_width> },
        { "projection-width", "", integer, "N", "0", "0..1048576", g_training, weights,
          [](S & s) -> At { return &s.model.sidecar.projection_width; },
          "width of the projection of CODI; 0: the model's", has_field<projection_width> },
        { "adapter-width", "", integer, "N", "0", "0..1048576", g_training, weights,
          [](S & s) -> At { return &s.model.sidecar.adapter_width; },
          "width of the adapter; 0: an eighth of the model's", has_field<adapter_width> },
        { "transition", "", choice, "NAME", "", "gru|overwrite", g_training, weights,
          [](S & s) -> At { return &s.model.sidecar.transition; },
          "how memory changes in a step (default gru)", has_field<transition> },
        { "seed", "-s", integer, "S", "0", "0..", g_training, weights, [](S & s) -> At { return &s.model.seed; },
          "seed of new weights, order and dropout" },
        { "recompute", "", flag, "", "", "", g_training, weights, [](S & s) -> At { return &s.model.recompute; },
          "compute each layer a second time in the backward instead of keeping what it made: about a third "
          "slower, a fraction of the memory" },
        { "low-memory", "", flag, "", "", "", g_training, weights, [](S & s) -> At { return &s.low_memory; },
          "keep no transposed weights and compute each layer a second time in the backward" },
        // Data.
        { "match", "", choice, "HOW", "", "exact|number|choice", g_data, scores,
          [](S & s) -> At { return &s.model.sidecar.match; },
          "generic task: compare whole answers (default), their first numbers, or which of the data's answers "
          "they begin with" },
        { "data", "", text, "DIR", "", "", g_data, weights, [](S & s) -> At { return &s.data; },
          "directory with train.jsonl and valid.jsonl (or .json as Coconut has them)", nullptr, true },
        { "task", "", choice, "NAME", "", "listops|prosqa|prontoqa|thread|generic", g_data, weights,
          [](S & s) -> At { return &s.model.sidecar.task; },
          "how answers are read (default: by the marks of the questions, else generic: any text)" },
        { "prompt-template", "", text, "TEXT", "", "", g_data, weights,
          [](S & s) -> At { return &s.model.sidecar.prompt_template; },
          "prompt with {question} in it (default: {question} and a newline)" },
        { "answer-prefix", "", text, "TEXT", "", "", g_data, weights,
          [](S & s) -> At { return &s.model.sidecar.answer_prefix; },
          "what stands before the answer (default: ### and a space)" },
        { "max-length", "", integer, "N", "0", "0..16777216", g_data, weights,
          [](S & s) -> At { return &s.max_length; },
          "rows of an example at most; 0: the model's context" },
        { "skip-long", "", flag, "", "", "", g_data, weights, [](S & s) -> At { return &s.skip_long; },
          "leave out examples that do not fit instead of refusing them" },
        // Measuring.
        { "eval-every", "", integer, "N", "100", "0..", g_measuring, scores,
          [](S & s) -> At { return &s.eval_every; },
          "updates between validations; 0: at the end only" },
        { "eval-limit", "", integer, "N", "200", "0..", g_measuring, scores,
          [](S & s) -> At { return &s.validation.limit; },
          "examples of a validation; 0: all. The choice of K uses all" },
        { "predict", "-n --n-predict", integer, "N", "0", "0..1048576", g_measuring, scores,
          [](S & s) -> At { return &s.validation.n_predict; },
          "tokens of an answer at most; 0: 32 (cot 256)" },
        { "kv-type", "-ctk --cache-type-k", choice, "TYPE", "f32", "f16|bf16|f32|q8_0", g_measuring, scores,
          [](S & s) -> At { return &s.validation.kv_type; },
          "storage of keys and values while answers are written" },
        // Output.
        { "name", "", text, "TEXT", "", "", g_output, files, [](S & s) -> At { return &s.name; },
          "name of the model, kept in its file (default: that of the run folder)" },
        { "save-every", "", integer, "N", "100", "0..", g_output, files, [](S & s) -> At { return &s.save_every; },
          "updates between checkpoints; 0: at the end only" },
        { "keep-checkpoints", "", integer, "N", "0", "0..1000000", g_output, files, [](S & s) -> At { return &s.n_keep_checkpoints; },
          "checkpoints that stay as checkpoint/update-U.gguf, the newest N; 0: only the last and the one before "
          "it" },
    };
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
