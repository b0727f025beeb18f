#include "train/settings.h"

#include "base/error.h"
#include "base/format.h"
#include "base/path.h"
#include "task/answer_length.h"
#include "task/example_format.h"
#include "text/prompt_format.h"
#include "text/prompt_template.h"
#include "text/utf8.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace penelope {

namespace {

void require(bool ok, const std::string & what, const std::string & hint = "") {
    if (!ok) {
        throw Error(ErrorKind::usage, what, hint);
    }
}

// config.toml can only contain UTF-8.
void require_utf8(const std::string & text, const std::string & flag, const std::string & what,
                  const std::string & hint) {
    require(valid_utf8_prefix(text) == text.size(),
            flag + " " + in_quotes(text, 1024) + ": " + what + "not valid UTF-8", hint);
}

void require_utf8_path(const std::string & path, const std::string & flag) {
    if (!path.empty()) {
        require_utf8(absolute_path(path).string(), flag, "path is ", "rename it, or give a link with another name");
    }
}

constexpr double kCotLr    = 1e-4;
constexpr double kLatentLr = 2e-5;

void check(const TrainSettings & s) {
    require(s.latent_steps <= int(s.model.sidecar.k_max), "--latent-steps " + std::to_string(s.latent_steps) +
                                                              ": exceeds --k-max " +
                                                              std::to_string(s.model.sidecar.k_max));
    require(s.shape_path.empty() || s.model.full,
            "--init-random: needs --full, a random backbone has no weights to adapt", "add --full");
    require(s.shape_path.empty() || s.model.init.empty(), "--init-random and --init: exclude each other");
    require_utf8_path(s.data, "--data");
    require_utf8_path(s.model.init, "--init");
    require_utf8_path(s.shape_path, "--init-random");
    require_utf8_path(s.shape_path.empty() ? s.model.base : "", "--model");
    require_utf8(s.name, "--name", "", "");
    require_utf8(s.model.sidecar.prompt_template, "--prompt-template", "", "");
    require_utf8(s.model.sidecar.answer_prefix, "--answer-prefix", "", "");
}

std::string shown(uint32_t value) {
    return std::to_string(value);
}
std::string shown(const std::string & value) {
    return in_quotes(value);
}

// A value that is not set becomes that of the --init file, else the fallback. A value that is set must equal the
// file's.
template <typename T> void resolve_value(T & value, const T * in_file, const T & fallback, const std::string & flag) {
    if (value == T{}) {
        value = in_file ? *in_file : fallback;
    } else if (in_file && value != *in_file) {
        throw Error(ErrorKind::usage, flag + " " + shown(value) + ": the --init file has " + shown(*in_file),
                    "leave " + flag + " out, or train without --init");
    }
}

// The same for a field of the method's modules.
void resolve_field(const MethodField & field, SidecarConfig & c, const SidecarConfig * in_file,
                   const SidecarConfig & defaults) {
    const std::string flag  = std::string("--") + field.flag;
    const auto        range = [&](const SidecarConfig & config) {
        return std::to_string(config.*field.number) + ":" + std::to_string(config.*field.end);
    };
    if (field.text) {
        resolve_value(c.*field.text, in_file ? &(in_file->*field.text) : nullptr, defaults.*field.text, flag);
    } else if (!field.end) {
        resolve_value(c.*field.number, in_file ? &(in_file->*field.number) : nullptr, defaults.*field.number, flag);
    } else if (c.*field.end == 0) {
        c.*field.number = (in_file ? *in_file : defaults).*field.number;
        c.*field.end    = (in_file ? *in_file : defaults).*field.end;
    } else {
        require(!in_file || (c.*field.number == in_file->*field.number && c.*field.end == in_file->*field.end),
                flag + " " + range(c) + ": the --init file has " + range(in_file ? *in_file : defaults),
                "leave " + flag + " out, or train without --init");
    }
}

void clear_field(const MethodField & field, SidecarConfig & c) {
    if (field.text) {
        (c.*field.text).clear();
    } else {
        c.*field.number = 0;
    }
    if (field.end) {
        c.*field.end = 0;
    }
}

void resolve_sidecar(TrainSettings & s, const ModelConfig & base, int depth, const ExampleFormat & format) {
    SidecarConfig               held;
    bool                        has_modules = false;
    std::optional<PromptFormat> prompt_format;
    if (!s.model.init.empty()) {
        const GgufReader file = GgufReader::open(s.model.init);
        prompt_format         = find_prompt_format(file);
        if (is_sidecar(file)) {
            held          = read_sidecar_config(file);
            has_modules   = held.method == s.model.method;
            s.fit_modules = s.fit_modules && !has_modules; // they have learned already
        }
    }
    const MethodTraining & training = method_training(s.model.method);
    SidecarConfig &        c        = s.model.sidecar;
    const auto             text     = [&](std::string PromptFormat::*field) {
        return prompt_format ? &((*prompt_format).*field) : nullptr;
    };
    resolve_value(c.prompt_template, text(&PromptFormat::prompt_template), std::string(format.prompt_template),
                  "--prompt-template");
    const bool        own    = c.task.empty() || c.task == generic_task().name;
    const std::string prefix = training.answer_prefix ? training.answer_prefix
                               : own                  ? format.answer_prefix
                                                      : find_task(c.task).answer_prefix;
    // A fixed prefix of the method takes precedence over the file of another method.
    resolve_value(c.answer_prefix,
                  training.answer_prefix && !has_modules ? nullptr : text(&PromptFormat::answer_prefix), prefix,
                  "--answer-prefix");

    SidecarConfig defaults;
    training.default_shape(defaults, base, depth);
    for (const MethodField * field : flagged_fields()) {
        if (has_flag(training.format(), field->flag)) {
            resolve_field(*field, c, has_modules ? &held : nullptr, defaults);
        } else {
            // A recipe may be used for several methods: clear what this method ignores, so that it does not affect
            // --resume.
            clear_field(*field, c);
        }
    }
}

constexpr size_t kMaxForcedSteps = 32; // default K of a run with teacher forcing is at most this

// Default K. Generic task: the largest number of written steps, at most the default of the method. With teacher
// forcing: one step per result of the longest chain, its start included, because the final pass does not learn a lookup
// of its own.
int latent_steps_for(const std::vector<Example> & examples, int defaults, const Task & task, bool is_forced) {
    size_t most = 1;
    for (const Example & example : examples) {
        most = std::max(most, example.steps.size());
    }
    if (is_forced && defaults > 0) {
        return int(std::min(most + 1, kMaxForcedSteps));
    }
    return &task != &generic_task() ? defaults : int(std::min(most, size_t(defaults)));
}

} // namespace

TaskChoice resolve_settings(TrainSettings & s, const ModelConfig & base, const std::vector<Example> & examples) {
    const TaskChoice choice         = choose_task(s.model.sidecar.task, s.model.sidecar.match, examples);
    s.model.sidecar.task            = choice.task->name;
    const MethodTraining & training = method_training(s.model.method);
    const Task &           task     = *choice.task;
    const Protocol &       protocol = task.protocol;
    s.model.cache_transposes        = !s.low_memory;
    s.model.recompute               = s.model.recompute || s.low_memory;
    if (s.model.full) {
        s.model.dropout = 0; // LoRA dropout, and there is no LoRA
    }
    if (s.batch_size == 0) {
        s.batch_size = protocol.batch_size;
    }
    if (s.n_updates == 0) {
        const double epochs    = s.epochs > 0 ? s.epochs : training.is_cot_stage ? protocol.cot_epochs : 0;
        const double n_updates = std::ceil(epochs * double(examples.size()) / s.batch_size);
        s.n_updates            = epochs > 0 ? std::max<int64_t>(1, int64_t(n_updates)) : protocol.latent_updates;
    }
    if (s.backbone_lr == 0) {
        s.backbone_lr = training.is_cot_stage ? kCotLr : kLatentLr;
    }
    const int default_latent_steps = latent_steps_for(examples, training.default_latent_steps(task), task,
                                                      training.supports_step_loss && s.teacher_forcing > 0);
    if (default_latent_steps == 0 || s.latent_steps < 0) {
        s.latent_steps = default_latent_steps;
    }
    // The control keeps the staged targets, so that it differs from the method only in the latent steps.
    s.n_blocks = s.latent_steps > 0 ? s.latent_steps : default_latent_steps;
    if (s.validation.n_predict == 0) {
        s.validation.n_predict = training.is_cot_stage ? kTraceTokens : kAnswerTokens;
    }
    // Clear settings that this method ignores, so that they do not affect --resume.
    if (!training.has_curriculum) {
        s.k_schedule   = "staged";
        s.advance_loss = 0;
    }
    if (s.latent_steps == 0 && s.k_schedule != "staged") { // there is only one stage
        s.advance_loss = 0;
    }
    if (!training.has_teacher) {
        s.distill = 0;
    }
    if (!training.supports_step_loss || s.latent_steps == 0) {
        s.step_loss = 0;
    }
    if (!training.supports_step_loss || s.latent_steps == 0) {
        s.teacher_forcing = 0;
        s.fit_modules     = false;
    }
    require(s.teacher_forcing == 0 || s.step_loss > 0, "--teacher-forcing: needs --step-loss", "add --step-loss 0.5");
    if (!training.is_cot_stage) {
        s.targets = "steps";
    }
    require(s.targets != "results" || std::any_of(examples.begin(), examples.end(),
                                                  [](const Example & example) { return !example.steps.empty(); }),
            "--targets results: no example has steps", "add \"steps\" to the examples, or leave --targets out");
    if (s.step_loss == 0) {
        s.step_loss_anneal = 0;
    }
    require(s.step_loss == 0 || std::any_of(examples.begin(), examples.end(),
                                            [](const Example & example) { return !example.steps.empty(); }),
            "--step-loss: no example has steps", "add \"steps\" to the examples, or leave --step-loss out");
    resolve_sidecar(s, base, s.latent_steps, format_of(examples.front().kind));
    check(s);
    return choice;
}

double step_loss_weight(const TrainSettings & s, int64_t update) {
    const double n_fading = s.step_loss_anneal * double(s.n_updates);
    const double n_left   = double(s.n_updates - update);
    return n_left >= n_fading ? s.step_loss : s.step_loss * n_left / n_fading;
}

} // namespace penelope
