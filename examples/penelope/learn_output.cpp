#include "learn_output.h"

#include "output.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/memory.h"
#include "base/number_text.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

namespace penelope {

namespace {

constexpr double kSecondsBetweenLines = 10; // where stderr is no terminal

// "1.9 GB": as people say it of a machine.
std::string gigabytes(double bytes) {
    return with_digits(bytes < 10e9 ? "%.1f" : "%.0f", bytes / 1e9);
}

std::string about(double seconds) {
    return seconds < 90 ? with_digits("%.0f seconds", std::max(1.0, seconds))
                        : with_digits("%.0f minutes", seconds / 60);
}

const char * stage_purpose(LearnStage stage) {
    switch (stage) {
        case LearnStage::visible: return "steps and answer as text";
        case LearnStage::bridge: return "results of the steps as text";
        case LearnStage::latent: return "the steps move into latent steps";
        case LearnStage::control: return "the same without latent steps";
    }
    return "";
}

std::string stage_line(const PlannedStage & planned) {
    const TrainSettings & s = planned.settings;
    return std::string("  ") + stage_name(planned.stage) +
           std::string(9 - std::string(stage_name(planned.stage)).size(), ' ') + stage_purpose(planned.stage) + ": " +
           std::to_string(s.n_updates) + " updates of " + std::to_string(s.batch_size) + " examples, " +
           (s.model.full ? "all weights" : "LoRA") + ", about " + about(planned.seconds);
}

void show_plan(const LearnPlan & plan, Terminal & terminal) {
    terminal.progress("");
    for (const PlannedStage & stage : plan.stages) {
        terminal.tell(stage_line(stage));
    }
    const std::optional<uint64_t> available = available_memory();
    terminal.tell("needs " + gigabytes(double(plan.bytes)) +
                  (available ? " GB of " + gigabytes(double(*available)) : " GB") + ", about " + about(plan.seconds));
}

// "steps right 100 100 83 40 %" or "right by number of steps 1: 98 2: 60 %"
std::string accuracy_text(const UpdateReport & r) {
    std::string text;
    if (!r.depths.empty()) {
        text = " | right by steps";
        for (const auto & [n_steps, share] : r.depths) {
            text += " " + std::to_string(n_steps) + ":" + with_digits("%.0f", 100 * share);
        }
        text += " %";
    }
    if (!r.steps_right.empty()) {
        text += " | latent steps right";
        for (double share : r.steps_right) {
            text += share < 0 ? " -" : " " + with_digits("%.0f", 100 * share);
        }
        text += " %";
    }
    return text;
}

std::string update_line(LearnStage stage, const UpdateReport & r, double ms_left,
                        const std::optional<ValidationReport> & score) {
    return std::string(stage_name(stage)) + " " + std::to_string(r.update) + "/" + std::to_string(r.n_updates) + " | " +
           format_duration(ms_left) + " left | loss " + with_digits("%.3f", r.loss) +
           (r.step_loss < 0 ? "" : ", steps " + with_digits("%.3f", r.step_loss)) +
           (score ? " | right " + with_digits("%.1f %%", 100 * score->exact) : "") + accuracy_text(r);
}

// Printed even if stderr is no terminal: a run that takes an hour must not be silent.
void print_line(const std::string & line, Terminal & terminal) {
    terminal.progress("");
    if (!terminal.quiet()) {
        std::fprintf(stderr, "%s\n", line.c_str());
    }
}

LearnEvents shown_events(Terminal & terminal) {
    struct State {
        std::optional<ValidationReport> score;
        Stopwatch                       since_line;
        bool                            is_first = true;
    };
    const auto  state = std::make_shared<State>();
    LearnEvents events;
    events.note          = [&terminal](const std::string & line) { print_line(line, terminal); };
    events.planned       = [&terminal](const LearnPlan & plan) { show_plan(plan, terminal); };
    events.stage_started = [&terminal, state](LearnStage stage, const TrainSettings & s) {
        state->score.reset();
        state->is_first = true;
        print_line(std::string("stage ") + stage_name(stage) + ": " + std::to_string(s.n_updates) + " updates, " +
                       s.out,
                   terminal);
    };
    events.updated = [&terminal, state](LearnStage stage, const UpdateReport & r, double ms_left) {
        const std::string line = update_line(stage, r, ms_left, state->score);
        if (terminal.err_is_tty()) {
            terminal.progress(line);
        } else if (state->is_first || state->since_line.elapsed_ms() > 1000 * kSecondsBetweenLines ||
                   r.update == r.n_updates) {
            print_line(line, terminal);
            state->since_line.restart();
            state->is_first = false;
        }
    };
    events.validated = [&terminal, state](LearnStage stage, const ValidationReport & r) {
        state->score = r;
        print_line(std::string(stage_name(stage)) + " " + std::to_string(r.update) + " | valid loss " +
                       with_digits("%.3f", r.loss) + " | right " + with_digits("%.1f %%", 100 * r.exact) + " of " +
                       std::to_string(r.n_examples) + " questions not trained on" + (r.is_best ? " | best so far" : ""),
                   terminal);
    };
    events.scoring = [&terminal](const std::string & what, double share) {
        terminal.progress("scoring " + what + ": " + with_digits("%.0f %%", 100 * share));
        if (share >= 1 && !terminal.err_is_tty()) {
            print_line("scored " + what, terminal);
        }
    };
    return events;
}

OrderedJson row_json(const ScoreRow & row) {
    const auto finite = [](double value) { return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr); };
    return { { "name", row.name },
             { "n", row.line.n },
             { "em", row.line.em },
             { "low", row.line.low },
             { "high", row.line.high },
             { "latency_ms", finite(row.line.latency_ms) },
             { "layer_applications", finite(row.line.layer_applications) },
             { "output_tokens", row.line.output_tokens },
             { "chosen", row.is_chosen } };
}

LearnEvents json_events(Terminal & terminal) {
    const auto  emit = [&terminal](const OrderedJson & object) { terminal.line(dump_json(object)); };
    LearnEvents events;
    events.note    = [emit](const std::string & line) { emit({ { "event", "note" }, { "text", line } }); };
    events.planned = [emit](const LearnPlan & plan) {
        OrderedJson stages = OrderedJson::array();
        for (const PlannedStage & s : plan.stages) {
            stages.push_back({ { "stage", stage_name(s.stage) },
                               { "updates", s.settings.n_updates },
                               { "batch_size", s.settings.batch_size },
                               { "full", s.settings.model.full },
                               { "seconds", s.seconds },
                               { "memory", s.probe.bytes } });
        }
        emit({ { "event", "plan" },
               { "stages", stages },
               { "scoring_seconds", plan.scoring_seconds },
               { "seconds", plan.seconds },
               { "memory", plan.bytes } });
    };
    events.stage_started = [emit](LearnStage stage, const TrainSettings & s) {
        emit({ { "event", "stage" }, { "stage", stage_name(stage) }, { "updates", s.n_updates }, { "folder", s.out } });
    };
    events.updated = [emit](LearnStage stage, const UpdateReport & r, double ms_left) {
        OrderedJson line = { { "event", "update" },  { "stage", stage_name(stage) },
                             { "update", r.update }, { "updates", r.n_updates },
                             { "loss", r.loss },     { "seconds_left", ms_left / 1000 } };
        if (r.step_loss >= 0) {
            line["step_loss"]   = r.step_loss;
            line["steps_right"] = r.steps_right;
        }
        if (!r.depths.empty()) {
            line["right_by_steps"] = r.depths;
        }
        emit(line);
    };
    events.validated = [emit](LearnStage stage, const ValidationReport & r) {
        emit({ { "event", "validation" },
               { "stage", stage_name(stage) },
               { "update", r.update },
               { "loss", r.loss },
               { "em", r.exact },
               { "n", r.n_examples },
               { "best", r.is_best } });
    };
    events.stage_finished = [emit](LearnStage stage, const TrainResult & r) {
        emit({ { "event", "stage_done" },
               { "stage", stage_name(stage) },
               { "updates", r.update },
               { "valid_em", r.exact },
               { "K", r.k_default } });
    };
    events.scoring = [emit](const std::string & what, double share) {
        emit({ { "event", "scoring" }, { "what", what }, { "share", share } });
    };
    return events;
}

void show_table(const std::vector<ScoreRow> & rows, Terminal & terminal) {
    std::vector<OrderedJson> table;
    for (const ScoreRow & row : rows) {
        const ScoredLine & l    = row.line;
        const bool         runs = std::isfinite(l.layer_applications);
        table.push_back(
            { { "model", (row.is_chosen ? "* " : "") + row.name },
              { "right", percent_text(l.em) },
              { "95 % interval", with_digits("%.1f", 100 * l.low) + " to " + with_digits("%.1f", 100 * l.high) },
              { "questions", std::to_string(l.n) },
              { "tokens", runs ? with_digits("%.1f", l.output_tokens) : "" },
              { "time", std::isfinite(l.latency_ms) ? format_duration(l.latency_ms) : "" },
              { "layers", runs ? with_digits("%.0f", l.layer_applications) : "" } });
    }
    terminal.write(format_table(table, TableFormat::markdown));
}

} // namespace

LearnEvents learn_events(const Options & options, Terminal & terminal) {
    return options.flag("json") ? json_events(terminal) : shown_events(terminal);
}

void show_learned(const LearnResult & r, const Options & options, Terminal & terminal) {
    terminal.progress("");
    if (options.flag("json")) {
        OrderedJson rows = OrderedJson::array();
        for (const ScoreRow & row : r.rows) {
            rows.push_back(row_json(row));
        }
        OrderedJson object = {
            { "event", "result" },          { "status", "ok" },         { "verdict", r.verdict.headline },
            { "advice", r.verdict.advice }, { "scores", rows },         { "model", r.model_path },
            { "report", r.report_path },    { "commands", r.commands }, { "notes", r.notes },
            { "seconds", r.seconds }
        };
        if (r.perplexity_before > 0) {
            object["perplexity"] = { { "before", r.perplexity_before }, { "after", r.perplexity_after } };
        }
        terminal.line(dump_json(object));
        return;
    }
    if (!r.rows.empty()) {
        show_table(r.rows, terminal);
        terminal.line("");
    }
    for (const std::string & note : r.notes) {
        terminal.line(note);
    }
    terminal.line(r.verdict.headline);
    terminal.line(r.verdict.advice);
    terminal.line("");
    for (const std::string & command : r.commands) {
        terminal.line("  " + command);
    }
    if (!r.report_path.empty()) {
        terminal.line("\nreport: " + r.report_path + "; all of it took " + format_duration(1000 * r.seconds));
    }
}

} // namespace penelope
