#include "train/settings.h"

#include "base/error.h"
#include "base/format.h"
#include "base/sha256.h"
#include "task/example_format.h"
#include "text/prompt_template.h"
#include "text/utf8.h"
#include "text/wording.h"
#include "train/data_files.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

namespace penelope {

namespace {

std::string hash_of(const std::string & path) {
    return path.empty() ? "" : sha256_file(path);
}

void require(bool ok, const std::string & what, const std::string & hint = "") {
    if (!ok) {
        throw Error(ErrorKind::usage, what, hint);
    }
}

// A run is continued from any directory.
std::string absolute_path(const std::string & path) {
    return std::filesystem::absolute(path).lexically_normal().string();
}

// config.toml, which the run is continued by, holds no other text.
void require_utf8(const std::string & text, const std::string & flag, const std::string & what,
                  const std::string & hint) {
    require(valid_utf8_prefix(text) == text.size(), flag + " " + in_quotes(text, 1024) + ": " + what + " is not UTF-8",
            hint);
}

void require_utf8_path(const std::string & path, const std::string & flag) {
    if (!path.empty()) {
        require_utf8(absolute_path(path), flag, "its path", "rename it, or give a link with another name");
    }
}

constexpr double kSourceRate       = 1e-4;
constexpr double kContinuationRate = 2e-5;
constexpr int    kAnswerTokens     = 32;  // room for an answer
constexpr int    kTraceTokens      = 256; // and for one with visible steps

void check(const TrainSettings & s) {
    require(s.depth <= int(s.model.sidecar.k_max),
            "--depth " + std::to_string(s.depth) + ": is above --k-max " + std::to_string(s.model.sidecar.k_max));
    require(s.new_shape.empty() || s.model.full, "--init-random: a new backbone has nothing to adapt", "add --full");
    require(s.new_shape.empty() || s.model.init.empty(), "--init-random and --init: a new backbone fits no adapter");
    require_utf8_path(s.data, "--data");
    require_utf8_path(s.model.init, "--init");
    require_utf8_path(s.new_shape, "--init-random");
    require_utf8_path(s.new_shape.empty() ? s.model.base : "", "--model");
    require_utf8(s.name, "--name", "it", "");
    require_utf8(s.model.sidecar.prompt_template, "--prompt-template", "it", "");
    require_utf8(s.model.sidecar.answer_prefix, "--answer-prefix", "it", "");
}

std::string shown(uint32_t value) {
    return std::to_string(value);
}
std::string shown(const std::string & value) {
    return in_quotes(value);
}

// An open value becomes the file's, or the fallback where there is no file; a given one must not contradict the file.
template <typename T> void settle(T & value, const T * in_file, const T & fallback, const std::string & flag) {
    if (value == T{}) {
        value = in_file ? *in_file : fallback;
    } else if (in_file && value != *in_file) {
        throw Error(ErrorKind::usage,
                    flag + " " + shown(value) + ": the file of --init was made with " + shown(*in_file));
    }
}

// The same for a value of the method's modules.
void settle_field(const MethodField & field, SidecarConfig & c, const SidecarConfig * in_file,
                  const SidecarConfig & usual) {
    const std::string flag = std::string("--") + field.flag;
    if (field.text) {
        settle(c.*field.text, in_file ? &(in_file->*field.text) : nullptr, usual.*field.text, flag);
    } else if (!field.end) {
        settle(c.*field.number, in_file ? &(in_file->*field.number) : nullptr, usual.*field.number, flag);
    } else if (c.*field.end == 0) {
        c.*field.number = (in_file ? *in_file : usual).*field.number;
        c.*field.end    = (in_file ? *in_file : usual).*field.end;
    } else {
        require(!in_file || (c.*field.number == in_file->*field.number && c.*field.end == in_file->*field.end),
                flag + ": the file of --init was made with another");
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

// Calls visit(field) for every field that a flag sets, of all methods once each.
template <typename Visit> void for_each_shape_field(const Visit & visit) {
    std::set<std::string> seen;
    for (const MethodFormat * format : method_formats()) {
        for (const MethodField & field : format->fields) {
            if (field.flag && seen.insert(field.flag).second) {
                visit(field);
            }
        }
    }
}

bool has_flag(const MethodFormat * format, const std::string & flag) {
    return format && std::any_of(format->fields.begin(), format->fields.end(),
                                 [&](const MethodField & field) { return field.flag && flag == field.flag; });
}

void resolve_sidecar(TrainSettings & s, const ModelConfig & base, int depth, const ExampleFormat & format) {
    SidecarConfig          held;
    bool                   has_modules = false;
    std::optional<Wording> wording;
    if (!s.model.init.empty()) {
        const GgufReader file = GgufReader::open(s.model.init);
        wording               = find_wording(file);
        if (is_sidecar(file)) {
            held        = read_sidecar_config(file);
            has_modules = held.method == s.model.method;
        }
    }
    const MethodTraining & training = method_training(s.model.method);
    SidecarConfig &        c        = s.model.sidecar;
    const auto             text = [&](std::string Wording::*field) { return wording ? &((*wording).*field) : nullptr; };
    settle(c.prompt_template, text(&Wording::prompt_template), std::string(format.prompt_template),
           "--prompt-template");
    const bool        own    = c.task.empty() || c.task == generic_task().name;
    const std::string prefix = training.answer_prefix ? training.answer_prefix
                               : own                  ? format.answer_prefix
                                                      : find_task(c.task).answer_prefix;
    // A prefix of the method's own does not give way to that of another method's file.
    settle(c.answer_prefix, training.answer_prefix && !has_modules ? nullptr : text(&Wording::answer_prefix), prefix,
           "--answer-prefix");

    SidecarConfig usual;
    training.usual_shape(usual, base, depth);
    for_each_shape_field([&](const MethodField & field) {
        if (has_flag(training.format(), field.flag)) {
            settle_field(field, c, has_modules ? &held : nullptr, usual);
        } else {
            // A recipe may serve several methods: what means nothing to this one must not tell its runs apart.
            clear_field(field, c);
        }
    });
}

// Data of one's own is thought about in as many latent steps as it has written ones, up to the usual number.
int depth_for(const std::vector<Example> & examples, int usual, const Task & task) {
    if (&task != &generic_task()) {
        return usual;
    }
    size_t most = 1;
    for (const Example & example : examples) {
        most = std::max(most, example.steps.size());
    }
    return int(std::min(most, size_t(usual)));
}

} // namespace

void resolve_settings(TrainSettings & s, const ModelConfig & base, const std::vector<Example> & examples) {
    if (s.model.sidecar.task.empty()) {
        const Task * recognized = s.model.sidecar.match.empty() ? recognize_task(examples) : nullptr;
        s.model.sidecar.task    = (recognized ? *recognized : generic_task()).name;
    }
    require(s.model.sidecar.match.empty() || s.model.sidecar.task == generic_task().name,
            "--match: task " + s.model.sidecar.task + " has a way of its own to read answers",
            "leave out one of the two");
    const MethodTraining & training = method_training(s.model.method);
    const Task &           task     = find_task(s.model.sidecar.task);
    const Protocol &       protocol = task.protocol;
    if (s.batch == 0) {
        s.batch = protocol.batch;
    }
    if (s.n_updates == 0) {
        const double epochs = s.epochs > 0 ? s.epochs : training.is_source ? protocol.source_epochs : 0;
        s.n_updates = epochs > 0 ? std::max<int64_t>(1, int64_t(std::ceil(epochs * double(examples.size()) / s.batch)))
                                 : protocol.latent_updates;
    }
    if (s.backbone_rate == 0) {
        s.backbone_rate = training.is_source ? kSourceRate : kContinuationRate;
    }
    const int usual_depth = depth_for(examples, training.usual_depth(task), task);
    if (usual_depth == 0 || s.depth < 0) {
        s.depth = usual_depth;
    }
    // Without latent steps the targets still lose their steps one by one, so that only the latent steps differ.
    s.n_blocks = s.depth > 0 ? s.depth : usual_depth;
    if (s.validation.n_predict == 0) {
        s.validation.n_predict = training.is_source ? kTraceTokens : kAnswerTokens;
    }
    // As with the modules: what means nothing to a method must not tell its runs apart.
    if (!training.has_stages) {
        s.depth_draw = "stages";
        s.learned    = 0;
    }
    if (s.depth == 0 && s.depth_draw != "stages") { // one stage without latent steps
        s.learned = 0;
    }
    if (!training.has_teacher) {
        s.distill = 0;
    }
    if (!training.says_steps || s.depth == 0) {
        s.step_loss = 0;
    }
    if (s.step_loss == 0) {
        s.step_fade = 0;
    }
    require(s.step_loss == 0 || std::any_of(examples.begin(), examples.end(),
                                            [](const Example & example) { return !example.steps.empty(); }),
            "--step-loss: no example has steps to ask for", "give the examples \"steps\", or leave the flag out");
    resolve_sidecar(s, base, s.depth, format_of(examples.front().kind));
    check(s);
}

double step_weight(const TrainSettings & s, int64_t update) {
    const double n_fading = s.step_fade * double(s.n_updates);
    const double n_left   = double(s.n_updates - update);
    return n_left >= n_fading ? s.step_loss : s.step_loss * n_left / n_fading;
}

namespace {

// The shortest number that gives this one again: 0.05, not 0.05000000074505806.
double as_written(float value) {
    char text[32];
    for (int n_digits = 6; n_digits <= 9; n_digits++) {
        std::snprintf(text, sizeof(text), "%.*g", n_digits, double(value));
        if (std::strtof(text, nullptr) == value) {
            break;
        }
    }
    return std::strtod(text, nullptr);
}

// The library prints seventeen digits where three do: 0.050000000000000003. Every value stands on one line.
std::string with_short_numbers(const std::string & toml) {
    std::istringstream lines(toml);
    std::string        out;
    for (std::string line; std::getline(lines, line);) {
        const size_t at     = line.find(" = ") + 3;
        char *       end    = nullptr;
        const double number = std::strtod(line.c_str() + at, &end);
        char         text[32];
        std::snprintf(text, sizeof(text), "%.15g", number);
        const bool is_long = at != std::string::npos + 3 && *end == '\0' && line.size() - at > 15;
        const bool is_same = std::strtod(text, nullptr) == number && std::strchr(text, '.') != nullptr;
        out += (is_long && is_same ? line.substr(0, at) + text : line) + "\n";
    }
    return out;
}

} // namespace

std::string settings_toml(const TrainSettings & s) {
    const SidecarConfig & sidecar = s.model.sidecar;
    toml::table           t;
    if (s.new_shape.empty()) {
        t.insert("model", absolute_path(s.model.base));
    } else {
        t.insert("init-random", absolute_path(s.new_shape));
    }
    t.insert("method", s.model.method);
    t.insert("data", absolute_path(s.data));
    if (!s.model.init.empty()) {
        t.insert("init", absolute_path(s.model.init));
    }
    if (!s.name.empty()) {
        t.insert("name", s.name);
    }
    t.insert("full", s.model.full);
    t.insert("low-memory", !s.model.keep_transposes);
    t.insert("recompute", s.model.recompute);
    t.insert("updates", s.n_updates);
    t.insert("batch", s.batch);
    t.insert("rates", dump_json(Json(s.backbone_rate)) + "," + dump_json(Json(s.module_rate)));
    t.insert("warmup", s.warmup);
    t.insert("clip", s.clip);
    t.insert("weight-decay", s.model.decay);
    t.insert("beta2", s.model.beta2);
    t.insert("seed", int64_t(s.model.seed));
    t.insert("max-length", s.max_length);
    t.insert("skip-long", s.skip_long);
    t.insert("eval-every", s.eval_every);
    t.insert("eval-limit", int64_t(s.validation.limit));
    t.insert("save-every", s.save_every);
    t.insert("keep", s.n_kept);
    t.insert("predict", s.validation.n_predict);
    t.insert("kv-type", ggml_type_name(s.validation.kv_type));
    t.insert("prompt-template", sidecar.prompt_template);
    t.insert("answer-prefix", sidecar.answer_prefix);
    t.insert("task", sidecar.task);
    if (!sidecar.match.empty()) {
        t.insert("match", sidecar.match);
    }
    if (!s.model.full) {
        t.insert("lora-rank", s.model.lora_rank);
        t.insert("lora-alpha", as_written(s.model.lora_alpha));
        t.insert("dropout", as_written(s.model.dropout));
    }
    const MethodFormat * format = method_training(s.model.method).format();
    if (format) {
        t.insert("depth", s.depth);
        t.insert("depth-draw", s.depth_draw);
        t.insert("distill", s.distill);
        t.insert("learned", s.learned);
        t.insert("step-loss", s.step_loss);
        t.insert("step-fade", s.step_fade);
    }
    for_each_shape_field([&](const MethodField & field) {
        if (!has_flag(format, field.flag)) {
            return;
        }
        if (field.end) {
            t.insert(field.flag, std::to_string(sidecar.*field.number) + ":" + std::to_string(sidecar.*field.end));
        } else if (field.text) {
            t.insert(field.flag, sidecar.*field.text);
        } else {
            t.insert(field.flag, int64_t(sidecar.*field.number));
        }
    });
    // Texts in one form alone, with everything escaped: of the others some drop a newline at the beginning, or end too
    // early.
    constexpr auto several_forms =
        toml::format_flags::allow_literal_strings | toml::format_flags::allow_multi_line_strings;
    std::ostringstream out;
    out << toml::toml_formatter(t, toml::toml_formatter::default_flags & ~several_forms) << "\n";
    return with_short_numbers(out.str());
}

OrderedJson settings_json(const TrainSettings & s) {
    const SidecarConfig & sidecar = s.model.sidecar;
    OrderedJson           all{
        { "method", s.model.method },
        { "full", s.model.full },
        { "updates", s.n_updates },
        { "batch", s.batch },
        { "depth", s.depth },
        { "depth_draw", s.depth_draw },
        { "learned", s.learned },
        { "step_loss", { s.step_loss, s.step_fade } },
        { "distill", s.distill },
        { "rates", { s.backbone_rate, s.module_rate } },
        { "warmup", s.warmup },
        { "clip", s.clip },
        { "weight_decay", s.model.decay },
        { "beta2", s.model.beta2 },
        { "dropout", s.model.dropout },
        { "lora", { s.model.full ? 0 : s.model.lora_rank, s.model.full ? 0.0f : s.model.lora_alpha } },
        { "seed", s.model.seed },
        { "max_length", s.max_length },
        { "skip_long", s.skip_long },
        { "eval_every", s.eval_every },
        { "eval_limit", s.validation.limit },
        { "predict", s.validation.n_predict },
        { "prompt_template", sidecar.prompt_template },
        { "answer_prefix", sidecar.answer_prefix },
        { "task", sidecar.task },
        { "match", sidecar.match },
        { "base_sha256", hash_of(s.model.base) },
        { "init_sha256", hash_of(s.model.init) },
        { "train_sha256", hash_of(find_split(s.data, "train")) },
        { "valid_sha256", hash_of(find_split(s.data, "valid")) },
    };
    if (s.validation.kv_type != GGML_TYPE_F32) { // checkpoints that do not say so have F32
        all["kv_type"] = ggml_type_name(s.validation.kv_type);
    }
    for_each_shape_field([&](const MethodField & field) {
        std::string key = field.flag;
        std::replace(key.begin(), key.end(), '-', '_');
        all[key] = field.end    ? OrderedJson{ sidecar.*field.number, sidecar.*field.end }
                   : field.text ? OrderedJson(sidecar.*field.text)
                                : OrderedJson(sidecar.*field.number);
    });
    return all;
}

} // namespace penelope
