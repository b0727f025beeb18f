#include "train_options.h"

#include "commands.h"
#include "config_file.h"
#include "model_setup.h"

#include "train/run_folder.h"

#include <charconv>
#include <filesystem>
#include <limits>

namespace penelope {

namespace {

namespace fs = std::filesystem;

// "A<separator>B" as two numbers.
template <typename T> std::pair<T, T> parse_pair(const std::string & flag, const std::string & text, char separator) {
    const size_t    middle = text.find(separator);
    std::pair<T, T> pair{};
    const auto      read = [&](const std::string & part, T & value) {
        const auto result = std::from_chars(part.data(), part.data() + part.size(), value);
        return result.ec == std::errc() && result.ptr == part.data() + part.size() && value >= T{} &&
               value <= std::numeric_limits<T>::max(); // no NaN, no infinity
    };
    if (middle == std::string::npos || !read(text.substr(0, middle), pair.first) ||
        !read(text.substr(middle + 1), pair.second)) {
        throw UsageError(flag + ": '" + text + "' is not two numbers with '" + separator + "' between them",
                         flag == "--interval" ? "--interval 11:16 repeats the layers 11 to 15" : "--rates 2e-5,1e-4");
    }
    return pair;
}

} // namespace

Options with_run_config(Options options) {
    const std::string path = (fs::path(options.required("out")) / "config.toml").string();
    if (options.flag("resume") && !fs::exists(path) && !options.given("data")) {
        throw Error(ErrorKind::usage, options.text("out") + ": holds no run to continue",
                    "check --out, or start a run without --resume");
    }
    if (!options.flag("resume") || !fs::exists(path)) {
        return options;
    }
    const bool by_epochs = options.given("epochs"); // then the number of updates follows from them
    for (const ConfigEntry & entry : read_config_file(path)) {
        if (entry.key == "updates" && by_epochs) {
            continue;
        }
        for (const OptionRow * row : command_options("train")) {
            if (entry.key == row->name) {
                options.set(*row, entry.values, OptionSource::config, path);
            }
        }
    }
    return options;
}

TrainSettings read_train_settings(const Options & options) {
    if (options.given("updates") && options.given("epochs") && options.source("updates") == options.source("epochs")) {
        throw UsageError("--updates and --epochs: both say how long to train", "give one of them");
    }
    TrainSettings s;
    s.out        = options.required("out");
    s.name       = options.text("name");
    s.data       = options.required("data");
    s.new_shape  = options.text("init-random");
    s.n_updates  = options.source("epochs") > options.source("updates") ? 0 : options.integer("updates");
    s.epochs     = options.number("epochs");
    s.batch      = int(options.integer("batch"));
    s.depth      = options.given("depth") ? int(options.integer("depth")) : -1;
    s.depth_draw = options.text("depth-draw");
    s.learned    = options.number("learned");
    s.step_loss  = options.number("step-loss");
    s.step_fade  = options.number("step-fade");
    s.distill    = options.number("distill");
    s.warmup     = options.number("warmup");
    s.clip       = options.number("clip");
    if (options.given("rates")) {
        const std::string text = options.text("rates");
        if (text.find(',') == std::string::npos && options.text("method") != "cot") {
            throw UsageError("--rates " + text + ": method " + options.text("method") + " has two rates",
                             "of LoRA or backbone and of the modules, e.g. --rates 2e-5,1e-4");
        }
        const auto [backbone, modules] =
            parse_pair<double>("--rates", text.find(',') == std::string::npos ? text + ",0" : text, ',');
        s.backbone_rate = backbone;
        s.module_rate   = modules;
    }
    s.max_length           = int(options.integer("max-length"));
    s.skip_long            = options.flag("skip-long");
    s.eval_every           = options.integer("eval-every");
    s.save_every           = options.integer("save-every");
    s.n_kept               = options.integer("keep");
    s.validation.limit     = size_t(options.integer("eval-limit"));
    s.validation.n_predict = int(options.integer("predict"));
    s.validation.kv_type   = parse_kv_type(options.text("kv-type"));

    ModelChoice & m   = s.model;
    m.method          = options.required("method");
    m.init            = options.text("init");
    m.full            = options.flag("full");
    m.lora_rank       = int(options.integer("lora-rank"));
    m.lora_alpha      = float(options.number("lora-alpha"));
    m.dropout         = m.full ? 0.0f : float(options.number("dropout"));
    m.decay           = options.number("weight-decay");
    m.beta2           = options.number("beta2");
    m.seed            = uint64_t(options.integer("seed"));
    m.keep_transposes = !options.flag("low-memory");
    m.recompute       = options.flag("low-memory") || options.flag("recompute");
    m.base            = s.new_shape.empty() ? options.required("model") : RunFolder(s.out).base();

    SidecarConfig & c   = m.sidecar;
    c.n_memory          = uint32_t(options.integer("memory"));
    c.n_readout         = uint32_t(options.integer("readout"));
    c.k_max             = uint32_t(options.integer("k-max"));
    c.time_length       = uint32_t(options.integer("time-length"));
    c.adapter_length    = uint32_t(options.integer("adapter-length"));
    c.projection_length = uint32_t(options.integer("projection-length"));
    c.transition        = options.text("transition");
    c.prompt_template   = options.text("prompt-template");
    c.answer_prefix     = options.text("answer-prefix");
    c.task              = options.text("task");
    c.match             = options.text("match");
    if (options.given("interval")) {
        std::tie(c.interval_start, c.interval_end) = parse_pair<uint32_t>("--interval", options.text("interval"), ':');
    }
    return s;
}

} // namespace penelope
