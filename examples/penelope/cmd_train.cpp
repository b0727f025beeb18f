// penelope train: visible chain of thought, Penelope or Coconut on the examples of a directory.
#include "commands.h"
#include "config_file.h"
#include "interrupt.h"
#include "output.h"

#include "base/atomic_file.h"
#include "base/format.h"
#include "base/memory.h"
#include "train/dump_gradients.h"
#include "train/new_backbone.h"
#include "train/trainer.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>

namespace penelope {

namespace {

namespace fs = std::filesystem;

constexpr int exit_interrupted = 130;

std::string with_digits(const char * format, double value) {
    char text[64];
    std::snprintf(text, sizeof(text), format, value);
    return text;
}

// "A<separator>B" as two numbers.
template <typename T> std::pair<T, T> parse_pair(const std::string & flag, const std::string & text, char separator) {
    const size_t    middle = text.find(separator);
    std::pair<T, T> pair{};
    const auto      read = [&](const std::string & part, T & value) {
        const auto result = std::from_chars(part.data(), part.data() + part.size(), value);
        return result.ec == std::errc() && result.ptr == part.data() + part.size() && !(value < T{});
    };
    if (middle == std::string::npos || !read(text.substr(0, middle), pair.first) ||
        !read(text.substr(middle + 1), pair.second)) {
        throw UsageError(flag + ": '" + text + "' is not two numbers with '" + separator + "' between them",
                         flag == "--interval" ? "--interval 11:16 repeats the layers 11 to 15" : "--rates 2e-5,1e-4");
    }
    return pair;
}

// With --resume, what the flags do not say is what the run was started with.
Options with_run_config(Options options) {
    const std::string path = (fs::path(options.required("out")) / "config.toml").string();
    if (options.flag("resume") && !fs::exists(path) && !options.given("data")) {
        throw Error(ErrorKind::usage, options.text("out") + ": holds no run to continue",
                    "check --out, or start a run without --resume");
    }
    if (!options.flag("resume") || !fs::exists(path)) {
        return options;
    }
    for (const ConfigEntry & entry : read_config_file(path)) {
        for (const OptionRow * row : command_options("train")) {
            if (entry.key == row->name) {
                options.set(*row, entry.values, OptionSource::config, path);
            }
        }
    }
    return options;
}

TrainSettings read_settings(const Options & options) {
    TrainSettings s;
    s.out       = options.required("out");
    s.name      = options.text("name");
    s.data      = options.required("data");
    s.new_shape = options.text("init-random");
    s.n_updates = options.integer("updates");
    s.epochs    = options.number("epochs");
    s.batch     = int(options.integer("batch"));
    s.depth     = options.given("depth") ? int(options.integer("depth")) : -1;
    s.warmup    = options.number("warmup");
    s.clip      = options.number("clip");
    if (options.given("rates")) {
        const std::string text = options.text("rates");
        // One number is enough where there is one rate.
        const auto [backbone, modules] =
            parse_pair<double>("--rates", text.find(',') == std::string::npos ? text + ",0" : text, ',');
        s.backbone_rate = backbone;
        s.module_rate   = modules;
    }
    s.max_length           = int(options.integer("max-length"));
    s.skip_long            = options.flag("skip-long");
    s.eval_every           = options.integer("eval-every");
    s.save_every           = options.integer("save-every");
    s.validation.limit     = size_t(options.integer("eval-limit"));
    s.validation.n_predict = int(options.integer("predict"));

    ModelChoice & m   = s.model;
    m.method          = options.required("method");
    m.init            = options.text("init");
    m.full            = options.flag("full");
    m.lora_rank       = int(options.integer("lora-rank"));
    m.lora_alpha      = float(options.number("lora-alpha"));
    m.dropout         = m.full ? 0.0f : float(options.number("dropout"));
    m.decay           = options.number("weight-decay");
    m.seed            = uint64_t(options.integer("seed"));
    m.keep_transposes = !options.flag("low-memory");
    m.recompute       = options.flag("low-memory") || options.flag("recompute");
    m.base            = s.new_shape.empty() ? options.required("model") : RunFolder(s.out).base();

    SidecarConfig & c = m.sidecar;
    c.n_memory        = uint32_t(options.integer("memory"));
    c.n_readout       = uint32_t(options.integer("readout"));
    c.k_max           = uint32_t(options.integer("k-max"));
    c.time_length     = uint32_t(options.integer("time-length"));
    c.adapter_length  = uint32_t(options.integer("adapter-length"));
    c.transition      = options.text("transition");
    c.prompt_template = options.text("prompt-template");
    c.answer_prefix   = options.text("answer-prefix");
    c.task            = options.text("task");
    if (options.given("interval")) {
        std::tie(c.interval_start, c.interval_end) = parse_pair<uint32_t>("--interval", options.text("interval"), ':');
    }
    return s;
}

std::string update_line(const UpdateReport & r) {
    return "update " + std::to_string(r.update) + "/" + std::to_string(r.n_updates) + " | " + stage_text(r.stage) +
           " | loss " + with_digits("%.4f", r.loss) + " | rates " + with_digits("%.2e", r.backbone_rate) + " " +
           with_digits("%.2e", r.module_rate) + " | norm " + with_digits("%.3f", r.norm) + " | " +
           with_digits("%.0f", r.tokens_per_second) + " tok/s | " + format_duration(r.ms) + " | " +
           format_bytes(r.peak_memory) + " | " + format_duration(r.ms_left) + " left";
}

std::string score_line(const ScoreReport & r) {
    return "update " + std::to_string(r.update) + " | " + stage_text(r.stage) + " | valid loss " +
           with_digits("%.4f", r.loss) + " | exact match " + with_digits("%.2f %%", 100 * r.exact) + " of " +
           std::to_string(r.n_examples) + (r.is_best ? " | best so far" : "");
}

// On stderr whether or not it is a terminal: a run that takes hours is looked at in its log.
void print_line(const std::string & line, const Terminal & terminal) {
    if (!terminal.quiet()) {
        std::fprintf(stderr, "%s\n", line.c_str());
    }
}

OrderedJson plan_json(const TrainPlan & plan) {
    OrderedJson stages = OrderedJson::array();
    for (const Stage & stage : plan.stages) {
        stages.push_back({ { "K", stage.n_steps },
                           { "u", stage.n_latent == kAnswerOnly ? OrderedJson("answer") : OrderedJson(stage.n_latent) },
                           { "updates", stage.n_updates() } });
    }
    return {
        { "status", "ok" },
        { "parameters",
          { { "lora", plan.n_lora },
            { "modules", plan.n_modules },
            { "backbone", plan.n_backbone },
            { "frozen", plan.n_frozen } } },
        { "stages", stages },
        { "examples",
          { { "train", plan.n_train },
            { "valid", plan.n_valid },
            { "skipped", plan.n_dropped },
            { "longest", plan.n_longest } } },
        { "memory",
          { { "weights", plan.weight_bytes }, { "optimizer", plan.optimizer_bytes }, { "graph", plan.graph_bytes } } },
        { "missing_operations", plan.missing_operations },
        { "sample",
          { { "prompt", plan.sample_prompt },
            { "target", plan.sample_target },
            { "prompt_ids", plan.sample.prompt },
            { "target_ids", plan.sample.target } } }
    };
}

void print_plan(const TrainPlan & plan, const Backend & backend, Terminal & terminal) {
    const auto count = [](const char * what, int64_t n) {
        return n ? "  " + std::string(what) + ": " + std::to_string(n) + "\n" : "";
    };
    std::string text = "trained parameters\n" + count("LoRA", plan.n_lora) + count("modules", plan.n_modules) +
                       count("backbone", plan.n_backbone) + "frozen parameters\n" + "  " +
                       std::to_string(plan.n_frozen) + "\nstages\n";
    for (const Stage & stage : plan.stages) {
        text += "  " + stage_text(stage) + ": " + std::to_string(stage.n_updates()) + " updates\n";
    }
    const size_t all = plan.weight_bytes + plan.optimizer_bytes + plan.graph_bytes;
    text += "examples\n  train " + std::to_string(plan.n_train) + ", valid " + std::to_string(plan.n_valid) +
            (plan.n_dropped ? ", too long and left out " + std::to_string(plan.n_dropped) : "") + "; the longest has " +
            std::to_string(plan.n_longest) + " tokens\n";
    text += "memory\n  weights " + format_bytes(plan.weight_bytes) + ", optimizer " +
            format_bytes(plan.optimizer_bytes) + ", graph of the longest minibatch " + format_bytes(plan.graph_bytes) +
            ": " + format_bytes(all);
    if (const auto available = available_memory()) {
        text += " of " + format_bytes(*available) + " available";
    }
    text += "\ndevice\n  " + backend.device().name +
            (plan.missing_operations.empty() ? ": runs every operation"
                                             : ": cannot run " + join(plan.missing_operations, ", ")) +
            "\n";
    text += "prompt of the first example\n" + plan.sample_prompt + (plan.sample_prompt.back() == '\n' ? "" : "\n") +
            "what it has to learn\n" + plan.sample_target;
    terminal.line(text);
}

// A backbone for looking at, gone when done.
class TemporaryFile {
  public:
    explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
    ~TemporaryFile() {
        std::error_code ec;
        fs::remove(path_, ec);
    }
    TemporaryFile(const TemporaryFile &)                 = delete;
    TemporaryFile &     operator=(const TemporaryFile &) = delete;
    const std::string & path() const { return path_; }

  private:
    std::string path_;
};

int look(TrainSettings settings, const Options & options, const Backend & backend, Terminal & terminal) {
    const TemporaryFile made(
        (fs::temp_directory_path() / ("penelope-" + std::to_string(std::rand()) + ".gguf")).string());
    if (!settings.new_shape.empty()) {
        write_new_backbone(read_backbone_shape(settings.new_shape), settings.model.seed, made.path());
        settings.model.base = made.path();
    }
    Trainer trainer(settings, backend);
    if (options.given("dump-gradients")) {
        const FirstGradients first = trainer.first_gradients();
        write_gradients(trainer.model(), first.loss, first.scale, options.text("dump-gradients"),
                        options.flag("force"));
        terminal.line(options.flag("json")
                          ? dump_json(OrderedJson{ { "status", "ok" },
                                                   { "loss", first.loss },
                                                   { "file", options.text("dump-gradients") } })
                          : options.text("dump-gradients") + ": loss " + with_digits("%.6f", first.loss));
        return 0;
    }
    const TrainPlan plan = trainer.plan();
    if (options.flag("json")) {
        terminal.line(dump_json(plan_json(plan)));
    } else {
        print_plan(plan, backend, terminal);
    }
    return 0;
}

OrderedJson build_json(const Backend & backend) {
    return { { "penelope", PENELOPE_VERSION },
             { "ggml", ggml_version_text() },
             { "device", backend.device().name },
             { "description", backend.device().description },
             { "threads", backend.n_threads() } };
}

} // namespace

int cmd_train(const Options & given, Terminal & terminal) {
    const Options       options  = with_run_config(given);
    const TrainSettings settings = read_settings(options);
    const Backend       backend(find_device(options.text("device")), int(options.integer("threads")));
    if (options.flag("dry-run") || options.given("dump-gradients")) {
        return look(settings, options, backend, terminal);
    }

    const bool      resume = options.flag("resume");
    const RunFolder folder(settings.out);
    const bool      is_new = !settings.new_shape.empty(); // the backbone then lies in the folder
    folder.check(resume, options.flag("force"));
    if (is_new && !(resume && folder.has(folder.base()))) {
        const NewBackbone shape = read_backbone_shape(settings.new_shape);
        folder.create(resume);
        write_new_backbone(shape, settings.model.seed, folder.base());
    }
    Trainer trainer(settings, backend);
    if (!is_new || resume) {
        folder.create(
            resume); // not before the settings have been looked at: this removes the run that --force replaces
    }
    if (!resume) {
        write_file(folder.config(), settings_toml(trainer.settings()), true);
        write_file(folder.build(), dump_json(build_json(backend), 2) + "\n", true);
    }

    const InterruptHold hold(InterruptHold::all_signals);
    const int64_t       log_every = options.integer("log-every");
    TrainEvents         events;
    events.updated = [&](const UpdateReport & report) {
        if (report.update % log_every == 0 || report.update == 1 || report.update == report.n_updates) {
            terminal.progress("");
            print_line(update_line(report), terminal);
        } else if (!terminal.quiet()) {
            terminal.progress(update_line(report));
        }
    };
    events.scored = [&](const ScoreReport & report) {
        terminal.progress("");
        print_line(score_line(report), terminal);
    };
    events.stop                = [] { return interrupt_count() > 0; };
    const TrainOutcome outcome = trainer.run(events, resume);
    terminal.progress("");
    if (outcome.interrupted) {
        throw Error(ErrorKind::cancelled,
                    "interrupted after update " + std::to_string(outcome.update) + "; everything is saved",
                    "penelope train --resume --out " + settings.out + " continues");
    }
    if (options.flag("json")) {
        terminal.line(dump_json(OrderedJson{
            { "status", "ok" },
            { "model", outcome.model_path },
            { "updates", outcome.update },
            { "best",
              { { "update", outcome.best.update }, { "exact", outcome.best.exact }, { "loss", outcome.best.loss } } },
            { "exact_by_K", outcome.exact },
            { "k_default", outcome.k_default } }));
    } else {
        std::string text = outcome.model_path;
        if (!outcome.exact.empty()) {
            text += ": exact match " + with_digits("%.2f %%", 100 * outcome.exact[size_t(outcome.k_default)]) +
                    " on validation at K=" + std::to_string(outcome.k_default);
        }
        terminal.line(text);
    }
    return 0;
}

} // namespace penelope
