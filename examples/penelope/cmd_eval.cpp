// penelope eval: exact match of a model on a file of questions, at one or several K; several sidecars side by side; and the
// paired comparison of two files of predictions.
#include "commands.h"
#include "interrupt.h"
#include "model_setup.h"
#include "output.h"

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/format.h"
#include "gguf/reader.h"
#include "latent/settled_file.h"
#include "latent/sidecar.h"
#include "task/choose_settled.h"
#include "task/compare.h"
#include "task/evaluate.h"
#include "task/evaluation_file.h"
#include "task/example_format.h"
#include "text/wording.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <optional>

namespace penelope {

namespace {

std::string percent(double share) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.2f %%", 100 * share);
    return text;
}

double rounded(double value, double unit) {
    return std::round(value / unit) * unit;
}

// "auto (3.2)": and the steps it took, in the mean.
std::string auto_text(const Score & s) {
    char text[32];
    std::snprintf(text, sizeof(text), "auto (%.2f)", s.n_taken);
    return text;
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

// Nothing is cut off in silence: an unfinished trace is scored by what there is of it. Empty when all answers ended.
std::string cut_line(const std::string & who, const Evaluation & run, const Score & s) {
    if (s.cut == 0) {
        return "";
    }
    return who + depth_text(run, s) + ": " + percent(s.cut) +
           " of the answers had no room to end and were scored as they were; -n or -c give more";
}

std::string chance_line(const std::vector<ChanceLevel> & levels) {
    std::vector<std::string> parts;
    for (const ChanceLevel & level : levels) {
        parts.push_back(percent(level.share) + " (" + level.how + ")");
    }
    return "without reasoning: " + join(parts, ", ");
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

// A file of predictions and the K to take them at: "a.jsonl@K=3", or -1 where no K is said.
struct Compared {
    std::vector<Evaluation> runs;
    Outcomes                outcomes;
};

Compared read_compared(const std::string & text, int steps) {
    const size_t at   = text.rfind("@K=");
    std::string  path = text;
    if (at != std::string::npos) {
        const char * first  = text.data() + at + 3;
        const char * last   = text.data() + text.size();
        const auto   result = std::from_chars(first, last, steps);
        if (result.ec != std::errc() || result.ptr != last || steps < 0) {
            throw UsageError("--compare: '" + text.substr(at + 3) + "' is not a number of latent steps",
                             "e.g. --compare a.jsonl@K=0 b.jsonl@K=5");
        }
        path = text.substr(0, at);
    }
    Compared compared{ read_evaluations(path), {} };
    compared.outcomes = outcomes_of(compared.runs, steps, path);
    return compared;
}

// "K=3", "K=3, 5" for runs that differ, "visible steps" where there is no K.
std::string steps_text(const Compared & compared) {
    if (std::all_of(compared.runs.begin(), compared.runs.end(),
                    [](const Evaluation & run) { return run.is_visible(); })) {
        return "visible steps";
    }
    const Outcomes &         outcomes = compared.outcomes;
    std::vector<std::string> parts;
    for (const int k : outcomes.steps) {
        parts.push_back(steps_label(k));
    }
    return "K=" + join(parts, ", ");
}

int compare(const Options & options, Terminal & terminal) {
    std::vector<std::string> files = options.list("compare");
    for (const std::string & file : options.list("with")) {
        files.push_back(file);
    }
    if (files.size() != 2) {
        throw UsageError("--compare: takes two files of predictions",
                         "penelope eval --compare a.jsonl b.jsonl, each with @K=N behind it where that K is meant");
    }
    const std::vector<int> steps = options.steps("latent-steps");
    if (steps.size() > 1) {
        throw UsageError("-K: a comparison takes one K", "leave it out to compare each at the K its file names");
    }
    const int              k      = steps.empty() ? -1 : steps.front();
    const Compared         first  = read_compared(files[0], k);
    const Compared         second = read_compared(files[1], k);
    const PairedDifference d      = paired_bootstrap(first.outcomes.questions, second.outcomes.questions);
    if (options.flag("json")) {
        OrderedJson object = { { "status", "ok" }, { "K", { first.outcomes.steps, second.outcomes.steps } } };
        object.update(difference_json(d));
        terminal.line(dump_json(object));
    } else {
        terminal.line("second (" + steps_text(second) + ") minus first (" + steps_text(first) +
                      "): " + difference_text(d));
    }
    return 0;
}

// How answers are read: by flags, else as the model's file says, else by the questions.
struct Reading {
    std::string task, match;
};

AnswerReader answer_reader(const Reading & reading, const Engine & engine, const std::vector<Example> & examples) {
    const Wording * wording    = engine.wording();
    const Task *    recognized = recognize_task(examples);
    std::string     task = reading.task, match = reading.match;
    if (task.empty() && !match.empty()) {
        task = generic_task().name;
    }
    if (task.empty()) {
        const bool generic = wording && wording->task == generic_task().name;
        task               = (recognized && !generic ? *recognized : generic_task()).name;
        match              = generic ? wording->match : "";
    }
    return AnswerReader(find_task(task),
                        wording ? wording->answer_prefix : format_of(examples.front().kind).answer_prefix,
                        parse_match(match), examples);
}

Evaluation evaluate_one(const Options & options, Terminal & terminal, const std::string & adapter,
                        const std::vector<Example> & examples, const Reading & reading,
                        const std::vector<int> & steps) {
    const auto engine = adapter.empty() ? load_engine(options, terminal) : load_engine(options, terminal, adapter);
    check_way(*engine, options.flag("cot") ? "cot" : "", -1, options.flag("insist"));
    const int      n_batch = static_cast<int>(options.integer("batch"));
    SessionOptions how     = session_options(options, n_batch);
    how.swap_memory        = options.flag("swap-memory");
    Session         session(engine, how);
    EvaluateOptions evaluation;
    evaluation.method = options.flag("cot") ? "cot" : "";
    evaluation.steps  = steps;
    std::sort(evaluation.steps.begin(), evaluation.steps.end());
    evaluation.steps.erase(std::unique(evaluation.steps.begin(), evaluation.steps.end()), evaluation.steps.end());
    evaluation.n_timed   = static_cast<int>(options.integer("timed"));
    evaluation.n_predict = static_cast<int>(options.integer("predict"));
    evaluation.n_batch   = n_batch;

    const InterruptHold hold;
    const Stopwatch     watch;
    Evaluation          result =
        evaluate(session, answer_reader(reading, *engine, examples), examples, evaluation, [&](double share) {
            terminal.progress(std::to_string(int(100 * share)) + " % of " + std::to_string(examples.size()) +
                              " questions, " + format_duration(watch.elapsed_ms() * (1 - share) / share) + " left");
            return interrupt_count() == 0;
        });
    terminal.progress("");
    return result;
}

void write_predictions(AtomicFile & file, const std::vector<Evaluation> & runs) {
    for (size_t i = 0; i < runs.size(); i++) {
        file.write(prediction_lines(runs[i], i + 1));
    }
    file.commit();
}

// Mean and spread over the runs, each at the K its file names; null when that was not among those scored.
OrderedJson spread_json(const std::vector<Evaluation> & runs) {
    std::vector<double> ems;
    for (const Evaluation & run : runs) {
        const Score * chosen = find_chosen_score(run);
        if (!chosen) {
            return nullptr;
        }
        ems.push_back(chosen->em);
    }
    const Spread s = spread(ems);
    return { { "runs", runs.size() }, { "em_mean", s.mean }, { "em_sd", s.sd } };
}

// The adapters to score, "A,B" counting as two; without --seed-runs one empty name for what --sidecar and --lora say. They
// are opened here: a wrong name in the last place is found before the questions are asked.
std::vector<std::string> adapters_of(const Options & options) {
    std::vector<std::string> files;
    for (const std::string & value : options.list("seed-runs")) {
        for (const std::string & part : split(value + ",", ',')) {
            if (part.empty()) {
                throw UsageError("--seed-runs: '" + value + "' has an empty place", "e.g. --seed-runs a.gguf,b.gguf");
            }
            GgufReader::open(part);
            files.push_back(part);
        }
    }
    for (const char * other : { "sidecar", "lora" }) {
        if (!files.empty() && options.given(other)) {
            throw UsageError(std::string("--seed-runs: cannot be combined with --") + other,
                             "name all files with --seed-runs");
        }
    }
    return files.empty() ? std::vector<std::string>{ "" } : files;
}

// Asks at every K, chooses what spares the most steps and writes the file that says so.
int choose_threshold(const Options & options, Terminal & terminal, const std::vector<Example> & examples,
                     const Reading & reading) {
    const std::string source = options.given("sidecar") ? options.text("sidecar") : options.text("model");
    const auto        config = read_sidecar_config(GgufReader::open(source));
    if (options.given("latent-steps") || options.given("seed-runs") || options.flag("cot")) {
        throw UsageError("--choose-settled: every K of one sidecar is asked", "leave -K, --seed-runs and --cot out");
    }
    if (!options.flag("force") && std::filesystem::exists(options.text("choose-settled"))) {
        throw Error(ErrorKind::io, options.text("choose-settled") + ": exists already", "--force replaces it");
    }
    std::vector<int> steps(size_t(config.k_max) + 1);
    std::iota(steps.begin(), steps.end(), 0);
    const Evaluation    run    = evaluate_one(options, terminal, "", examples, reading, steps);
    const SettledChoice choice = choose_settled(run.predictions, int(config.k_default));
    if (choice.threshold == 0) {
        throw Error(ErrorKind::usage,
                    "--choose-settled: no threshold keeps the exactness of K=" + std::to_string(choice.n_reference),
                    "use a fixed -K with this file");
    }
    write_settled(source, choice.threshold, options.text("choose-settled"), options.flag("force"));
    if (options.flag("json")) {
        terminal.line(dump_json(OrderedJson{ { "status", "ok" },
                                             { "file", options.text("choose-settled") },
                                             { "settled", choice.threshold },
                                             { "em", choice.exact },
                                             { "steps", choice.n_taken },
                                             { "reference_K", choice.n_reference },
                                             { "reference_em", choice.reference } }));
        return 0;
    }
    char text[256];
    std::snprintf(text, sizeof(text), "settled at a cosine of %.5f: EM %s with %.2f steps, %s with %d",
                  double(choice.threshold), percent(choice.exact).c_str(), choice.n_taken,
                  percent(choice.reference).c_str(), choice.n_reference);
    terminal.line(text);
    return 0;
}

void print_runs(const std::vector<Evaluation> & runs, const std::vector<std::string> & names, const Options & options,
                Terminal & terminal) {
    if (options.flag("json")) {
        for (size_t i = 0; i < runs.size(); i++) {
            OrderedJson object = evaluation_json(runs[i]);
            object["model"]    = names[i];
            if (const auto d = difference_to_guess(runs[i], find_task(runs[i].task))) {
                object["over_guess"] = difference_json(*d);
            }
            if (runs.size() > 1) {
                object["all_runs"] = spread_json(runs);
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
            notes.push_back(cut_line(names[i], runs[i], s));
        }
    }
    terminal.write(format_table(table, TableFormat::markdown));
    terminal.line("");
    terminal.line(chance_line(runs.front().chance));
    for (size_t i = 0; i < runs.size(); i++) {
        if (const auto d = difference_to_guess(runs[i], find_task(runs[i].task))) {
            terminal.line(names[i] + depth_text(runs[i], *find_chosen_score(runs[i])) +
                          " minus the first of these: " + difference_text(*d));
        }
    }
    for (const std::string & note : notes) {
        if (!note.empty()) {
            terminal.line(note);
        }
    }
    if (runs.size() > 1) {
        const OrderedJson all = spread_json(runs);
        terminal.line(std::to_string(runs.size()) + " runs, each at its own K: " +
                      (all.is_null() ? "not all of these K were scored"
                                     : "EM " + percent(all["em_mean"]) + ", sd " + percent(all["em_sd"])));
    }
}

} // namespace

int cmd_eval(const Options & options, Terminal & terminal) {
    if (options.given("compare")) {
        return compare(options, terminal);
    }
    if (options.given("with")) {
        throw UsageError("'" + options.text("with") + "': unexpected argument", "the questions are given with --data");
    }
    options.required("model");
    std::vector<Example> examples = read_examples(options.required("data"));
    if (options.given("limit")) {
        examples.resize(std::min(examples.size(), static_cast<size_t>(options.integer("limit"))));
    }
    const Reading reading{ options.text("task"), options.text("match") };
    if (!reading.match.empty() && !reading.task.empty() && reading.task != generic_task().name) {
        throw UsageError("--match: task " + reading.task + " has a way of its own to read answers",
                         "leave out one of the two");
    }

    if (options.given("choose-settled")) {
        return choose_threshold(options, terminal, examples, reading);
    }

    // Refused before the questions are asked: the work would be lost.
    std::optional<AtomicFile> predictions;
    if (options.given("predictions")) {
        predictions.emplace(options.text("predictions"), options.flag("force"));
    }

    std::vector<Evaluation>  runs;
    std::vector<std::string> names;
    for (const std::string & adapter : adapters_of(options)) {
        runs.push_back(evaluate_one(options, terminal, adapter, examples, reading, options.steps("latent-steps")));
        const std::string & file = adapter.empty() ? options.text("sidecar") : adapter;
        names.push_back(file.empty() ? runs.back().method : file);
    }
    // The scores first: a disk that is full must not cost them.
    print_runs(runs, names, options, terminal);
    if (predictions) {
        write_predictions(*predictions, runs);
    }
    return 0;
}

} // namespace penelope
