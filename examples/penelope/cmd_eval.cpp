// penelope eval: exact match of a model on a file of questions, at one or several K; several sidecars side by side; and the
// paired comparison of two files of predictions.
#include "commands.h"
#include "interrupt.h"
#include "model_setup.h"
#include "output.h"

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/format.h"
#include "latent/sidecar.h"
#include "task/compare.h"
#include "task/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

namespace penelope {

namespace {

OrderedJson prediction_json(const Prediction & p) {
    return { { "id", p.id },
             { "K", p.n_steps },
             { "correct", p.correct },
             { "parsed", p.parsed },
             { "extracted", p.extracted },
             { "answer", p.answer },
             { "text", p.text },
             { "question", p.question },
             { "output_tokens", p.n_tokens },
             { "finish_reason", p.finish_reason },
             { "latency_ms", p.latency_ms },
             { "layer_applications", p.layer_applications } };
}

OrderedJson score_json(const Score & s) {
    return { { "K", s.n_steps },
             { "em", s.em },
             { "parsed", s.parsed },
             { "n", s.n },
             { "output_tokens", s.output_tokens },
             { "latency_ms", s.latency_ms },
             { "layer_applications", s.layer_applications } };
}

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
             { "ms", rounded(s.latency_ms, 0.1) },
             { "layer applications", s.layer_applications } };
}

std::string chance_line(const std::vector<ChanceLevel> & levels) {
    std::vector<std::string> parts;
    for (const ChanceLevel & level : levels) {
        parts.push_back(percent(level.share) + " (" + level.how + ")");
    }
    return "without reasoning: " + join(parts, ", ");
}

// (id, correct) of the lines with one of these K in a predictions file; of every line when none is given.
std::vector<std::pair<std::string, bool>> read_outcomes(const std::string & path, const std::vector<int> & steps) {
    std::ifstream file(path);
    if (!file) {
        throw Error(ErrorKind::not_found, path + ": cannot be opened");
    }
    std::vector<std::pair<std::string, bool>> outcomes;
    size_t                                    n_line = 0;
    for (std::string text; std::getline(file, text);) {
        const std::string where = path + ":" + std::to_string(++n_line);
        if (text.empty()) {
            continue;
        }
        const Json row = parse_json(text, where);
        const int  k   = int(json_get<int64_t>(row, "K", where));
        if (steps.empty() || std::find(steps.begin(), steps.end(), k) != steps.end()) {
            outcomes.emplace_back(json_get<std::string>(row, "id", where), json_get<bool>(row, "correct", where));
        }
    }
    return outcomes;
}

int compare(const Options & options, Terminal & terminal) {
    const std::vector<std::string> files = options.list("compare");
    if (files.size() != 2) {
        throw UsageError("--compare: takes two files of predictions",
                         "penelope eval --compare a.jsonl --compare b.jsonl");
    }
    const std::vector<int> steps = options.steps("latent-steps");
    const PairedDifference d     = paired_bootstrap(read_outcomes(files[0], steps), read_outcomes(files[1], steps));
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

Evaluation evaluate_one(const Options & options, Terminal & terminal, const std::string & sidecar,
                        const std::vector<Example> & examples, const Task & task) {
    const auto      engine  = load_engine(options, terminal, sidecar);
    const int       n_batch = static_cast<int>(options.integer("batch"));
    Session         session(engine, session_options(options, n_batch));
    EvaluateOptions evaluation;
    evaluation.method    = options.flag("cot") ? "cot" : "";
    evaluation.steps     = options.steps("latent-steps");
    evaluation.n_predict = static_cast<int>(options.integer("predict"));
    evaluation.n_batch   = n_batch;

    const InterruptHold hold;
    const Stopwatch     watch;
    Evaluation          result = evaluate(session, task, examples, evaluation, [&](size_t n_done, size_t n_all) {
        const double left = watch.elapsed_ms() * double(n_all - n_done) / double(n_done);
        terminal.progress(std::to_string(n_done) + " of " + std::to_string(n_all) + " questions, " +
                                   format_duration(left) + " left");
        return interrupt_count() == 0;
    });
    terminal.progress("");
    return result;
}

void write_predictions(const Options & options, const std::vector<Evaluation> & runs) {
    if (!options.given("predictions")) {
        return;
    }
    std::string lines;
    for (const Evaluation & run : runs) {
        for (const Prediction & p : run.predictions) {
            lines += dump_json(prediction_json(p)) + "\n";
        }
    }
    write_file(options.text("predictions"), lines, options.flag("force"));
}

// Mean and spread of the runs at each run's own best K, as the paper reports them.
OrderedJson spread_json(const std::vector<Evaluation> & runs) {
    std::vector<double> ems;
    for (const Evaluation & run : runs) {
        for (const Score & s : run.scores) {
            if (s.n_steps == run.best_steps) {
                ems.push_back(s.em);
            }
        }
    }
    const Spread s = spread(ems);
    return { { "runs", runs.size() }, { "em_mean", s.mean }, { "em_sd", s.sd } };
}

} // namespace

int cmd_eval(const Options & options, Terminal & terminal) {
    if (options.given("compare")) {
        return compare(options, terminal);
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

    std::vector<std::string> sidecars = options.list("seed-runs");
    if (sidecars.empty()) {
        sidecars.push_back(options.text("sidecar"));
    }
    std::vector<Evaluation>  runs;
    std::vector<OrderedJson> table;
    for (const std::string & sidecar : sidecars) {
        runs.push_back(evaluate_one(options, terminal, sidecar, examples, *task));
        for (const Score & s : runs.back().scores) {
            table.push_back(table_row(sidecar.empty() ? runs.back().method : sidecar, s));
        }
    }
    write_predictions(options, runs);

    if (options.flag("json")) {
        for (const Evaluation & run : runs) {
            OrderedJson results = OrderedJson::array(), chance = OrderedJson::array();
            for (const Score & s : run.scores) {
                results.push_back(score_json(s));
            }
            for (const ChanceLevel & level : run.chance) {
                chance.push_back({ { "how", level.how }, { "em", level.share } });
            }
            OrderedJson object{ { "status", "ok" },     { "task", task->name },       { "method", run.method },
                                { "results", results }, { "best_K", run.best_steps }, { "chance", chance } };
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
        terminal.line("best K of each of " + std::to_string(runs.size()) + " runs: EM " + percent(all["em_mean"]) +
                      ", sd " + percent(all["em_sd"]));
    }
    return 0;
}

} // namespace penelope
