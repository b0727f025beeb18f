// Settings as they are kept: for people and --config, and for a checkpoint to compare with.
#include "base/path.h"
#include "base/sha256.h"
#include "train/data_files.h"
#include "train/settings.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace penelope {

namespace {

std::string hash_of(const std::string & path) {
    return path.empty() ? "" : sha256_file(path);
}

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
    // A run is continued from any directory.
    if (s.new_shape.empty()) {
        t.insert("model", absolute_path(s.model.base).string());
    } else {
        t.insert("init-random", absolute_path(s.new_shape).string());
    }
    t.insert("method", s.model.method);
    t.insert("data", absolute_path(s.data).string());
    if (!s.model.init.empty()) {
        t.insert("init", absolute_path(s.model.init).string());
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
    for (const MethodField * field : flagged_fields()) {
        if (!has_flag(format, field->flag)) {
            continue;
        }
        if (field->end) {
            t.insert(field->flag, std::to_string(sidecar.*field->number) + ":" + std::to_string(sidecar.*field->end));
        } else if (field->text) {
            t.insert(field->flag, sidecar.*field->text);
        } else {
            t.insert(field->flag, int64_t(sidecar.*field->number));
        }
    }
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
    for (const MethodField * field : flagged_fields()) {
        std::string key = field->flag;
        std::replace(key.begin(), key.end(), '-', '_');
        all[key] = field->end    ? OrderedJson{ sidecar.*field->number, sidecar.*field->end }
                   : field->text ? OrderedJson(sidecar.*field->text)
                                 : OrderedJson(sidecar.*field->number);
    }
    return all;
}

} // namespace penelope
