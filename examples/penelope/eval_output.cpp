#include "eval_output.h"

#include "interrupt.h"
#include "output.h"

#include "base/format.h"
#include "base/number_text.h"
#include "task/evaluation_file.h"

#include <cmath>
#include <cstdio>

namespace penelope {

std::string percent(double share) {
    return fixed(100 * share, 2) + " %";
}

std::string difference_text(const PairedDifference & d) {
    char text[160];
    std::snprintf(text, sizeof(text), "%+.2f points, 95 %% interval [%+.2f, %+.2f], %zu questions", 100 * d.difference,
                  100 * d.low, 100 * d.high, d.n);
    return text;
}

OrderedJson difference_json(const PairedDifference & d) {
    return { { "n", d.n }, { "difference", d.difference }, { "low", d.low }, { "high", d.high } };
}

namespace {

double rounded(double value, double unit) {
    return std::round(value / unit) * unit;
}

// "auto (3.2)": with the mean number of steps taken.
std::string auto_text(const Score & s) {
    return "auto (" + fixed(s.n_steps_taken, 2) + ")";
}

OrderedJson table_row(const std::string & who, const Evaluation & run, const Score & s) {
    return { { "model", who },
             { "K", run.is_visible()          ? OrderedJson("")
                    : s.n_steps == kAutoSteps ? OrderedJson(auto_text(s))
                                              : OrderedJson(s.n_steps) },
             { "EM", percent(s.em) },
             { "parsed", percent(s.parsed) },
             { "n", s.n },
             { "output tokens", rounded(s.output_tokens, 0.01) },
             { "ms", std::isfinite(s.latency_ms) ? OrderedJson(rounded(s.latency_ms, 0.1)) : OrderedJson("") },
             { "layer applications", run.is_visible() ? OrderedJson(std::to_string(s.layer_applications) + " a token")
                                                      : OrderedJson(s.layer_applications) } };
}

std::string depth_text(const Evaluation & run, const Score & s) {
    return run.is_visible() ? "" : ", K=" + steps_label(s.n_steps);
}

// Truncated answers are scored as they are, which lowers the score: say so. "" if none was truncated.
std::string truncation_note(const std::string & who, const Evaluation & run, const Score & s) {
    if (s.truncated == 0) {
        return "";
    }
    return who + depth_text(run, s) + ": " + percent(s.truncated) + " of the answers were truncated (raise -n or -c)";
}

std::string chance_line(const std::vector<ChanceLevel> & levels) {
    std::vector<std::string> parts;
    for (const ChanceLevel & level : levels) {
        parts.push_back(percent(level.share) + " (" + level.how + ")");
    }
    return "baselines: " + join(parts, ", ");
}

// Mean and standard deviation over the runs, each at its file's default K; null if a run was not evaluated there.
OrderedJson mean_std_json(const std::vector<Evaluation> & runs) {
    std::vector<double> ems;
    for (const Evaluation & run : runs) {
        const Score * chosen = find_chosen_score(run);
        if (!chosen) {
            return nullptr;
        }
        ems.push_back(chosen->em);
    }
    const MeanStd s = mean_std(ems);
    return { { "runs", runs.size() }, { "em_mean", s.mean }, { "em_sd", s.sd } };
}

} // namespace

void print_runs(const std::vector<Evaluation> & runs, const std::vector<std::string> & names, const Options & options,
                Terminal & terminal) {
    if (options.flag("json")) {
        for (size_t i = 0; i < runs.size(); i++) {
            OrderedJson object = evaluation_json(runs[i]);
            object["model"]    = names[i];
            if (const auto d = difference_to_chance(runs[i], find_task(runs[i].task))) {
                object["over_chance"] = difference_json(*d);
            }
            if (runs.size() > 1) {
                object["all_runs"] = mean_std_json(runs);
            }
            terminal.line(dump_json(object));
        }
        return;
    }
    std::vector<OrderedJson> table;
    std::vector<std::string> notes;
    for (size_t i = 0; i < runs.size(); i++) {
        for (const Score & s : runs[i].scores) {
            table.push_back(table_row(names[i], runs[i], s));
            notes.push_back(truncation_note(names[i], runs[i], s));
        }
    }
    terminal.write(format_table(table, TableFormat::markdown));
    terminal.line("");
    terminal.line(chance_line(runs.front().chance));
    for (size_t i = 0; i < runs.size(); i++) {
        if (const auto d = difference_to_chance(runs[i], find_task(runs[i].task))) {
            terminal.line(names[i] + depth_text(runs[i], *find_chosen_score(runs[i])) +
                          " minus the first baseline: " + difference_text(*d));
        }
    }
    for (const std::string & note : notes) {
        if (!note.empty()) {
            terminal.line(note);
        }
    }
    if (runs.size() > 1) {
        const OrderedJson all = mean_std_json(runs);
        terminal.line(std::to_string(runs.size()) + " runs, each at its own K: " +
                      (all.is_null() ? "not all of these K were evaluated"
                                     : "EM " + percent(all["em_mean"]) + ", sd " + percent(all["em_sd"])));
    }
}

int print_interrupted(std::vector<Evaluation> runs, const std::vector<std::string> & names, const std::string & file,
                      const Options & options, Terminal & terminal) {
    const Evaluation  last     = runs.back();
    const size_t      n_scored = last.scores.empty() ? 0 : last.scores.front().n;
    const std::string kept =
        (file.empty() ? "--predictions FILE saves the answers" : "answers saved in " + file) +
        (last.n_unanswered == 0 ? std::string("; latency not measured")
                                : "; short questions come first, so these scores do not represent all questions");
    const Error error(ErrorKind::cancelled,
                      "evaluation: interrupted after " + std::to_string(n_scored) + " of " +
                          std::to_string(n_scored + last.n_unanswered) + " questions" +
                          (runs.size() > 1 ? " of run " + std::to_string(runs.size()) : ""),
                      n_scored == 0 ? "" : kept);
    if (options.flag("json")) {
        runs.pop_back();
        print_runs(runs, names, options, terminal);
        OrderedJson object     = error_json(error);
        object["n_unanswered"] = last.n_unanswered;
        if (n_scored > 0) {
            object["partial"] = evaluation_json(last);
            object["partial"].erase("status");
        }
        terminal.line(dump_json(object));
        return interrupted_exit_code();
    }
    if (n_scored == 0) {
        runs.pop_back();
    }
    if (!runs.empty()) {
        print_runs(runs, names, options, terminal);
    }
    terminal.error(error);
    return interrupted_exit_code();
}

} // namespace penelope
