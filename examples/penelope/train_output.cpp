#include "train_output.h"

#include "output.h"

#include "base/format.h"
#include "base/memory.h"
#include "base/number_text.h"

#include <cstdio>
#include <memory>
#include <optional>

namespace penelope {

namespace {

std::string progress_text(const UpdateReport & r) {
    return "update " + std::to_string(r.update) + "/" + std::to_string(r.n_updates);
}

// " (right 100 100 83 40 %)": what latent steps 1, 2, ... say on their own memory; "-" where nobody was asked.
std::string right_text(const std::vector<double> & shares) {
    std::string text;
    for (double share : shares) {
        text += share < 0 ? " -" : " " + with_digits("%.0f", 100 * share);
    }
    return text.empty() ? "" : " (right" + text + " %)";
}

std::string losses_text(const UpdateReport & r) {
    return "loss " + with_digits("%.4f", r.loss) +
           (r.step_loss < 0 ? "" : " | steps " + with_digits("%.4f", r.step_loss) + right_text(r.steps_right));
}

std::string throughput_text(const UpdateReport & r) {
    return "rates " + with_digits("%.2e", r.backbone_lr) + " " + with_digits("%.2e", r.module_lr) + " | norm " +
           with_digits("%.3f", r.grad_norm) + " | " + with_digits("%.0f", r.tokens_per_second) + " tok/s";
}

std::string update_line(const UpdateReport & r) {
    return progress_text(r) + " | " + stage_text(r.stage) + " | " + losses_text(r) + " | " + throughput_text(r) +
           " | " + format_duration(r.ms) + " | " + format_bytes(r.peak_memory) + " | " + format_duration(r.ms_left) +
           " left";
}

// The same for a terminal, where a narrow one cuts the end: what is looked at most stands first.
std::string live_line(const UpdateReport & r, const std::optional<ValidationReport> & score) {
    return progress_text(r) + " | " + losses_text(r) +
           (score ? " | exact match " + with_digits("%.1f %%", 100 * score->exact) : "") + " | " +
           format_duration(r.ms_left) + " left | " + stage_text(r.stage) + " | " + throughput_text(r) + " | " +
           format_bytes(r.peak_memory);
}

std::string validation_line(const ValidationReport & r) {
    return "update " + std::to_string(r.update) + " | " + stage_text(r.stage) + " | valid loss " +
           with_digits("%.4f", r.loss) + " | exact match " + with_digits("%.2f %%", 100 * r.exact) + " of " +
           std::to_string(r.n_examples) + (r.is_best ? " | best so far" : "");
}

// Printed even if stderr is not a terminal, because long runs write to a log file.
void print_line(const std::string & line, Terminal & terminal) {
    terminal.progress("");
    if (!terminal.quiet()) {
        std::fprintf(stderr, "%s\n", line.c_str());
    }
}

OrderedJson plan_json(const TrainPlan & plan) {
    OrderedJson stages = OrderedJson::array();
    for (const Stage & stage : plan.stages) {
        stages.push_back(
            { { "K", stage.n_steps },
              { "u", stage.n_skip_steps == kAnswerOnly ? OrderedJson("answer") : OrderedJson(stage.n_skip_steps) },
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
        { "missing_operations", plan.unsupported_nodes },
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
            (plan.n_dropped ? ", too long and dropped " + std::to_string(plan.n_dropped) : "") + "; the longest has " +
            std::to_string(plan.n_longest) + " tokens\n";
    text += "memory\n  weights " + format_bytes(plan.weight_bytes) + ", optimizer " +
            format_bytes(plan.optimizer_bytes) + ", graph of the longest minibatch " + format_bytes(plan.graph_bytes) +
            ": " + format_bytes(all);
    if (const auto available = available_memory()) {
        text += " of " + format_bytes(*available) + " available";
    }
    text += "\ndevice\n  " + backend.device().name +
            (plan.unsupported_nodes.empty() ? ": supports every operation"
                                            : ": does not support " + join(plan.unsupported_nodes, ", ")) +
            "\n";
    text += "prompt of the first example\n" + plan.sample_prompt + (plan.sample_prompt.back() == '\n' ? "" : "\n") +
            "target\n" + plan.sample_target;
    terminal.line(text);
}

} // namespace

TrainEvents shown_events(Terminal & terminal, int64_t log_every) {
    TrainEvents events;
    const auto  last = std::make_shared<std::optional<ValidationReport>>();
    events.updated   = [&terminal, log_every, last](const UpdateReport & report) {
        const bool is_last = report.update == report.n_updates;
        if (terminal.err_is_tty() && !terminal.verbose() && !is_last) {
            terminal.progress(live_line(report, *last));
        } else if (report.update % log_every == 0 || report.update == 1 || is_last) {
            print_line(update_line(report), terminal);
        }
    };
    events.validated = [&terminal, last](const ValidationReport & report) {
        *last = report;
        print_line(validation_line(report), terminal);
    };
    return events;
}

void show_plan(const TrainPlan & plan, const Backend & backend, const Options & options, Terminal & terminal) {
    if (options.flag("json")) {
        terminal.line(dump_json(plan_json(plan)));
    } else {
        print_plan(plan, backend, terminal);
    }
}

void show_gradients(double loss, const std::string & path, const Options & options, Terminal & terminal) {
    terminal.line(options.flag("json")
                      ? dump_json(OrderedJson{ { "status", "ok" }, { "loss", loss }, { "file", path } })
                      : path + ": loss " + with_digits("%.6f", loss));
}

void show_outcome(const TrainResult & outcome, const Options & options, Terminal & terminal) {
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
}

} // namespace penelope
