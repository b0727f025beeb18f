// penelope eval: exact match of a model on a file of questions, at one or several K; several sidecars side by side; and the
// paired comparison of two files of predictions.
#include "commands.h"
#include "interrupt.h"
#include "model_setup.h"
#include "output.h"

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/format.h"
#include "task/compare.h"
#include "task/evaluation_file.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <sstream>

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

OrderedJson table_row(const std::string & who, const Score & s) {
    return { { "model", who },
             { "K", s.n_steps },
             { "EM", percent(s.em) },
             { "parsed", percent(s.parsed) },
             { "n", s.n },
             { "output tokens", rounded(s.output_tokens, 0.01) },
             { "ms", std::isfinite(s.latency_ms) ? OrderedJson(rounded(s.latency_ms, 0.1)) : OrderedJson("") },
             { "layer applications", s.layer_applications } };
}

std::string chance_line(const std::vector<ChanceLevel> & levels) {
    std::vector<std::string> parts;
    for (const ChanceLevel & level : levels) {
        parts.push_back(percent(level.share) + " (" + level.how + ")");
    }
    return "without reasoning: " + join(parts, ", ");
}

int compare(const Options & options, Terminal & terminal) {
    std::vector<std::string> files = options.list("compare");
    for (const std::string & file : options.list("with")) {
        files.push_back(file);
    }
    if (files.size() != 2) {
        throw UsageError("--compare: takes two files of predictions", "penelope eval --compare a.jsonl b.jsonl");
    }
    const std::vector<int> steps = options.steps("latent-steps");
    if (steps.size() > 1) {
        throw UsageError("-K: a comparison takes one K", "leave it out to compare each at the K its file names");
    }
    const int              k = steps.empty() ? -1 : steps.front();
    const PairedDifference d = paired_bootstrap(outcomes_of(read_evaluations(files[0]), k, files[0]),
                                                outcomes_of(read_evaluations(files[1]), k, files[1]));
    if (options.flag("json")) {
        terminal.line(dump_json(OrderedJson{
            { "status", "ok" }, { "n", d.n }, { "difference", d.difference }, { "low", d.low }, { "high", d.high } }));
    } else {
        char text[160];
        std::snprintf(text, sizeof(text),
                      "second minus first: %+.2f points, 95 %% interval [%+.2f, %+.2f], %zu questions",
                      100 * d.difference, 100 * d.low, 100 * d.high, d.n);
        terminal.line(text);
    }
    return 0;
}

Evaluation evaluate_one(const Options & options, Terminal & terminal, const std::string & adapter,
                        const std::vector<Example> & examples, const Task & task) {
    const auto      engine = adapter.empty() ? load_engine(options, terminal) : load_engine(options, terminal, adapter);
    const int       n_batch = static_cast<int>(options.integer("batch"));
    Session         session(engine, session_options(options, n_batch));
    EvaluateOptions evaluation;
    evaluation.method = options.flag("cot") ? "cot" : "";
    evaluation.steps  = options.steps("latent-steps");
    std::sort(evaluation.steps.begin(), evaluation.steps.end());
    evaluation.steps.erase(std::unique(evaluation.steps.begin(), evaluation.steps.end()), evaluation.steps.end());
    evaluation.n_timed   = static_cast<int>(options.integer("timed"));
    evaluation.n_predict = static_cast<int>(options.integer("predict"));
    evaluation.n_batch   = n_batch;

    const InterruptHold hold;
    const Stopwatch     watch;
    Evaluation          result = evaluate(session, task, examples, evaluation, [&](double share) {
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

// Mean and spread over the runs, each at the K its file names.
OrderedJson spread_json(const std::vector<Evaluation> & runs) {
    std::vector<double> ems;
    for (const Evaluation & run : runs) {
        ems.push_back(chosen_score(run).em);
    }
    const Spread s = spread(ems);
    return { { "runs", runs.size() }, { "em_mean", s.mean }, { "em_sd", s.sd } };
}

// "A,B" counts as two.
std::vector<std::string> seed_runs(const Options & options) {
    std::vector<std::string> files;
    for (const std::string & value : options.list("seed-runs")) {
        std::istringstream parts(value);
        for (std::string part; std::getline(parts, part, ',');) {
            files.push_back(part);
        }
    }
    return files;
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
    const Task * task = options.given("task") ? &find_task(options.text("task")) : recognize_task(examples);
    if (!task) {
        throw Error(ErrorKind::usage, options.text("data") + ": cannot tell which task its questions belong to",
                    "give --task");
    }

    // Refused before the questions are asked: the work would be lost.
    std::optional<AtomicFile> predictions;
    if (options.given("predictions")) {
        predictions.emplace(options.text("predictions"), options.flag("force"));
    }

    std::vector<std::string> adapters = seed_runs(options);
    if (adapters.empty()) {
        adapters.push_back(""); // what --sidecar and --lora name
    }
    std::vector<Evaluation>  runs;
    std::vector<OrderedJson> table;
    for (const std::string & adapter : adapters) {
        runs.push_back(evaluate_one(options, terminal, adapter, examples, *task));
        const std::string & name = adapter.empty() ? options.text("sidecar") : adapter;
        for (const Score & s : runs.back().scores) {
            table.push_back(table_row(name.empty() ? runs.back().method : name, s));
        }
    }
    if (predictions) {
        write_predictions(*predictions, runs);
    }

    if (options.flag("json")) {
        for (const Evaluation & run : runs) {
            OrderedJson object = evaluation_json(run);
            if (runs.size() > 1) {
                object["all_runs"] = spread_json(runs);
            }
            terminal.line(dump_json(object));
        }
        return 0;
    }
    terminal.write(format_table(table, TableFormat::markdown));
    terminal.line("");
    terminal.line(chance_line(runs.front().chance));
    if (runs.size() > 1) {
        const OrderedJson all = spread_json(runs);
        terminal.line(std::to_string(runs.size()) + " runs, each at its own K: EM " + percent(all["em_mean"]) +
                      ", sd " + percent(all["em_sd"]));
    }
    return 0;
}

} // namespace penelope
