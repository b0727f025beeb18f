#include "train/settings.h"

#include "base/error.h"
#include "base/format.h"
#include "base/sha256.h"
#include "task/text_layout.h"
#include "text/prompt_template.h"
#include "train/data_files.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
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

// What the comparison of methods fixes per task: the source stage in epochs, the latent stage in updates.
struct Protocol {
    double  source_epochs;
    int64_t latent_updates;
    int     batch;
    int     coconut_depth;
};

Protocol protocol_of(const std::string & task) {
    if (task == "prontoqa") {
        return { 2, 3000, 8, 6 };
    }
    return { task == "prosqa" ? 1.0 : 3.0, 1500, 4, task == "listops" ? 8 : 6 };
}

constexpr int    kPenelopeDepth    = 6;
constexpr double kSourceRate       = 1e-4;
constexpr double kContinuationRate = 2e-5;
constexpr int    kAnswerTokens     = 32;  // room for an answer
constexpr int    kTraceTokens      = 256; // and for one with visible steps

void check(const TrainSettings & s) {
    require(s.model.method == "cot" || s.depth <= int(s.model.sidecar.k_max),
            "--depth " + std::to_string(s.depth) + ": is above --k-max " + std::to_string(s.model.sidecar.k_max));
    require(s.new_shape.empty() || s.model.full, "--init-random: a new backbone has nothing to adapt", "add --full");
    require(s.new_shape.empty() || s.model.init.empty(), "--init-random and --init: a new backbone fits no adapter");
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

void resolve_sidecar(TrainSettings & s, const ModelConfig & base, int depth) {
    SidecarConfig held;
    const bool    has_file  = !s.model.init.empty();
    bool          has_texts = false, has_modules = false;
    if (has_file) {
        const GgufReader file = GgufReader::open(s.model.init);
        has_texts             = is_sidecar(file);
        if (has_texts) {
            held        = read_sidecar_config(file);
            has_modules = held.method == s.model.method;
        }
    }
    const auto      text   = [&](const std::string & value) { return has_texts ? &value : nullptr; };
    const auto      number = [&](const uint32_t & value) { return has_modules ? &value : nullptr; };
    SidecarConfig & c      = s.model.sidecar;
    // A recipe may serve several methods: what means nothing to this one must not tell its runs apart.
    if (s.model.method != "penelope") {
        c.interval_start = c.interval_end = c.n_memory = c.n_readout = c.time_length = c.adapter_length = 0;
        c.transition.clear();
    }
    if (s.model.method == "cot") {
        c.k_max = 0;
    }
    settle(c.prompt_template, text(held.prompt_template), std::string(default_prompt_template), "--prompt-template");
    settle(c.answer_prefix, text(held.answer_prefix), std::string(default_answer_prefix), "--answer-prefix");
    settle(c.k_max, number(held.k_max), std::max<uint32_t>(8, uint32_t(depth)), "--k-max");
    if (s.model.method == "penelope") {
        // Without a word on it: the upper 5 of 16 layers, in proportion, and module sizes in proportion to the width.
        const int  r             = std::max(1, int(std::lround(base.n_layer * 5.0 / 16.0)));
        const bool open_interval = c.interval_end == 0;
        settle(c.interval_end, number(held.interval_end), uint32_t(base.n_layer), "--interval");
        if (open_interval) {
            c.interval_start = has_modules ? held.interval_start : uint32_t(base.n_layer - r);
        } else {
            require(!has_modules || c.interval_start == held.interval_start,
                    "--interval: the file of --init was made with another");
        }
        settle(c.n_memory, number(held.n_memory), uint32_t(8), "--memory");
        settle(c.n_readout, number(held.n_readout), uint32_t(2), "--readout");
        settle(c.time_length, number(held.time_length), uint32_t(std::max(1, base.n_embd / 2)), "--time-length");
        settle(c.adapter_length, number(held.adapter_length), uint32_t(std::max(1, base.n_embd / 8)),
               "--adapter-length");
        settle(c.transition, has_modules ? &held.transition : nullptr, std::string("gru"), "--transition");
    }
}

} // namespace

void resolve_settings(TrainSettings & s, const ModelConfig & base, const std::vector<Example> & examples) {
    if (s.model.sidecar.task.empty()) {
        const Task * task    = recognize_task(examples);
        s.model.sidecar.task = task ? task->name : "";
    }
    const bool     visible  = s.model.method == "cot";
    const Protocol protocol = protocol_of(s.model.sidecar.task);
    if (s.batch == 0) {
        s.batch = protocol.batch;
    }
    if (s.n_updates == 0) {
        const double epochs = s.epochs > 0 ? s.epochs : visible ? protocol.source_epochs : 0;
        s.n_updates = epochs > 0 ? std::max<int64_t>(1, int64_t(std::ceil(epochs * double(examples.size()) / s.batch)))
                                 : protocol.latent_updates;
    }
    if (s.backbone_rate == 0) {
        s.backbone_rate = visible ? kSourceRate : kContinuationRate;
    }
    const int usual_depth = visible ? 0 : s.model.method == "coconut" ? protocol.coconut_depth : kPenelopeDepth;
    if (visible || s.depth < 0) {
        s.depth = usual_depth;
    }
    // Without latent steps the targets still lose their steps one by one, so that only the latent steps differ.
    s.n_blocks = s.depth > 0 ? s.depth : usual_depth;
    if (s.validation.n_predict == 0) {
        s.validation.n_predict = visible ? kTraceTokens : kAnswerTokens;
    }
    resolve_sidecar(s, base, s.depth);
    check(s);
}

std::string settings_toml(const TrainSettings & s) {
    const SidecarConfig & sidecar = s.model.sidecar;
    toml::table           t;
    if (s.new_shape.empty()) {
        t.insert("model", s.model.base);
    } else {
        t.insert("init-random", s.new_shape);
    }
    t.insert("method", s.model.method);
    t.insert("data", s.data);
    if (!s.model.init.empty()) {
        t.insert("init", s.model.init);
    }
    if (!s.name.empty()) {
        t.insert("name", s.name);
    }
    t.insert("full", s.model.full);
    t.insert("updates", s.n_updates);
    t.insert("batch", s.batch);
    t.insert("rates", dump_json(Json(s.backbone_rate)) + "," + dump_json(Json(s.module_rate)));
    t.insert("warmup", s.warmup);
    t.insert("clip", s.clip);
    t.insert("weight-decay", s.model.decay);
    t.insert("seed", int64_t(s.model.seed));
    t.insert("max-length", s.max_length);
    t.insert("skip-long", s.skip_long);
    t.insert("eval-every", s.eval_every);
    t.insert("eval-limit", int64_t(s.validation.limit));
    t.insert("save-every", s.save_every);
    t.insert("predict", s.validation.n_predict);
    t.insert("prompt-template", sidecar.prompt_template);
    t.insert("answer-prefix", sidecar.answer_prefix);
    if (!sidecar.task.empty()) {
        t.insert("task", sidecar.task);
    }
    if (!s.model.full) {
        t.insert("lora-rank", s.model.lora_rank);
        t.insert("lora-alpha", double(s.model.lora_alpha));
        t.insert("dropout", double(s.model.dropout));
    }
    if (s.model.method != "cot") {
        t.insert("depth", s.depth);
        t.insert("k-max", int64_t(sidecar.k_max));
    }
    if (s.model.method == "penelope") {
        t.insert("interval", std::to_string(sidecar.interval_start) + ":" + std::to_string(sidecar.interval_end));
        t.insert("memory", int64_t(sidecar.n_memory));
        t.insert("readout", int64_t(sidecar.n_readout));
        t.insert("time-length", int64_t(sidecar.time_length));
        t.insert("adapter-length", int64_t(sidecar.adapter_length));
        t.insert("transition", sidecar.transition);
    }
    std::ostringstream out;
    out << t << "\n";
    return out.str();
}

OrderedJson settings_json(const TrainSettings & s) {
    const SidecarConfig & sidecar = s.model.sidecar;
    return OrderedJson{
        { "method", s.model.method },
        { "full", s.model.full },
        { "updates", s.n_updates },
        { "batch", s.batch },
        { "depth", s.depth },
        { "rates", { s.backbone_rate, s.module_rate } },
        { "warmup", s.warmup },
        { "clip", s.clip },
        { "weight_decay", s.model.decay },
        { "dropout", s.model.dropout },
        { "lora", { s.model.lora_rank, s.model.lora_alpha } },
        { "seed", s.model.seed },
        { "max_length", s.max_length },
        { "skip_long", s.skip_long },
        { "eval_every", s.eval_every },
        { "eval_limit", s.validation.limit },
        { "predict", s.validation.n_predict },
        { "interval", { sidecar.interval_start, sidecar.interval_end } },
        { "memory", sidecar.n_memory },
        { "readout", sidecar.n_readout },
        { "k_max", sidecar.k_max },
        { "time_length", sidecar.time_length },
        { "adapter_length", sidecar.adapter_length },
        { "transition", sidecar.transition },
        { "prompt_template", sidecar.prompt_template },
        { "answer_prefix", sidecar.answer_prefix },
        { "task", sidecar.task },
        { "base_sha256", hash_of(s.model.base) },
        { "init_sha256", hash_of(s.model.init) },
        { "train_sha256", hash_of(find_split(s.data, "train")) },
        { "valid_sha256", hash_of(find_split(s.data, "valid")) },
    };
}

} // namespace penelope
