#include "task/evaluation_file.h"

#include "base/error.h"
#include "base/format.h"
#include "base/trim.h"
#include "task/choose_task.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

namespace penelope {

namespace {

constexpr const char * file_hint = "give files that penelope eval --json or --predictions wrote";

OrderedJson number_or_null(double value) {
    return std::isfinite(value) && value >= 0 ? OrderedJson(value) : OrderedJson(nullptr);
}

OrderedJson steps_json(int n_steps) {
    return n_steps == kAutoSteps ? OrderedJson(steps_label(n_steps)) : OrderedJson(n_steps);
}

int read_steps(const Json & row, const std::string & where) {
    if (row.contains("K") && row["K"] == steps_label(kAutoSteps)) {
        return kAutoSteps;
    }
    return int(json_get<int64_t>(row, "K", where));
}

OrderedJson score_json(const Score & s) {
    OrderedJson by_depth = OrderedJson::array();
    for (const DepthScore & d : s.by_depth) {
        by_depth.push_back({ { "depth", d.depth }, { "n", d.n }, { "em", d.em } });
    }
    return { { "K", steps_json(s.n_steps) },
             { "steps", s.n_steps_taken },
             { "em", s.em },
             { "parsed", s.parsed },
             { "truncated", s.truncated },
             { "n", s.n },
             { "output_tokens", s.output_tokens },
             { "latency_ms", number_or_null(s.latency_ms) },
             { "latency_sd", s.latency_sd },
             { "layer_applications", s.layer_applications },
             { "by_depth", by_depth } };
}

Score read_score(const Json & row, const std::string & where) {
    Score s;
    s.n_steps            = read_steps(row, where);
    s.n_steps_taken      = json_find<double>(row, "steps", where).value_or(double(s.n_steps));
    s.em                 = json_get<double>(row, "em", where);
    s.parsed             = json_get<double>(row, "parsed", where);
    s.truncated          = json_find<double>(row, "truncated", where).value_or(0.0);
    s.n                  = size_t(json_get<int64_t>(row, "n", where));
    s.output_tokens      = json_get<double>(row, "output_tokens", where);
    s.latency_ms         = json_find<double>(row, "latency_ms", where).value_or(NAN);
    s.latency_sd         = json_find<double>(row, "latency_sd", where).value_or(0.0);
    s.layer_applications = int(json_get<int64_t>(row, "layer_applications", where));
    for (const Json & d : row.value("by_depth", Json::array())) {
        s.by_depth.push_back({ int(json_get<int64_t>(d, "depth", where)), size_t(json_get<int64_t>(d, "n", where)),
                               json_get<double>(d, "em", where) });
    }
    return s;
}

Evaluation read_evaluation(const Json & object, const std::string & where) {
    Evaluation e;
    e.task             = json_get<std::string>(object, "task", where);
    e.method           = json_get<std::string>(object, "method", where);
    const Json results = object.value("results", Json::array());
    if (!results.is_array() || results.empty()) {
        throw Error(ErrorKind::format, where + ": no results found", file_hint);
    }
    for (const Json & row : results) {
        e.scores.push_back(read_score(row, where));
    }
    e.default_steps = int(json_get<int64_t>(object, "default_K", where));
    for (const Json & level : object.value("chance", Json::array())) {
        e.chance.push_back({ json_get<std::string>(level, "how", where), json_get<double>(level, "em", where) });
    }
    return e;
}

Prediction read_prediction(const Json & row, const std::string & where) {
    Prediction p;
    p.id                 = json_get<std::string>(row, "id", where);
    p.n_steps            = read_steps(row, where);
    p.n_steps_taken      = int(json_find<int64_t>(row, "steps", where).value_or(p.n_steps));
    p.depth              = int(json_find<int64_t>(row, "depth", where).value_or(-1));
    p.correct            = json_get<bool>(row, "correct", where);
    p.parsed             = json_get<bool>(row, "parsed", where);
    p.extracted          = json_get<std::string>(row, "extracted", where);
    p.answer             = json_get<std::string>(row, "answer", where);
    p.gold               = p.correct ? p.extracted : p.answer;
    p.text               = json_get<std::string>(row, "text", where);
    p.question           = json_get<std::string>(row, "question", where);
    p.n_tokens           = int(json_get<int64_t>(row, "output_tokens", where));
    p.finish_reason      = json_get<std::string>(row, "finish_reason", where);
    p.latency_ms         = json_find<double>(row, "latency_ms", where).value_or(-1.0);
    p.layer_applications = int(json_get<int64_t>(row, "layer_applications", where));
    return p;
}

// What a run's predictions say of it, but for the K its file names and the method.
Evaluation from_predictions(std::vector<Prediction> predictions, const std::string & task_name) {
    Evaluation           e;
    std::vector<Example> examples;
    for (const Prediction & p : predictions) {
        if (p.n_steps == predictions.front().n_steps) {
            examples.push_back({ p.id, p.question, {}, p.gold });
        }
    }
    const Task * task = choose_task(task_name, "", examples).task;
    e.task            = task->name;
    e.chance          = task->chance(examples);
    e.scores          = score(predictions);
    e.predictions     = std::move(predictions);
    return e;
}

} // namespace

OrderedJson evaluation_json(const Evaluation & e) {
    OrderedJson results = OrderedJson::array(), chance = OrderedJson::array();
    for (const Score & s : e.scores) {
        results.push_back(score_json(s));
    }
    for (const ChanceLevel & level : e.chance) {
        chance.push_back({ { "how", level.how }, { "em", level.share } });
    }
    return { { "status", "ok" },
             { "task", e.task },
             { "method", e.method },
             { "results", results },
             { "default_K", e.default_steps },
             { "best_K", steps_json(best_steps(e.scores)) },
             { "chance", chance } };
}

std::string prediction_lines(const Evaluation & evaluation, size_t run) {
    std::string lines;
    for (const Prediction & p : evaluation.predictions) {
        lines += dump_json(OrderedJson{ { "id", p.id },
                                        { "run", run },
                                        { "task", evaluation.task },
                                        { "method", evaluation.method },
                                        { "K", steps_json(p.n_steps) },
                                        { "steps", p.n_steps_taken },
                                        { "default_K", evaluation.default_steps },
                                        { "correct", p.correct },
                                        { "parsed", p.parsed },
                                        { "extracted", p.extracted },
                                        { "answer", p.answer },
                                        { "text", p.text },
                                        { "question", p.question },
                                        { "depth", p.depth >= 0 ? OrderedJson(p.depth) : OrderedJson(nullptr) },
                                        { "output_tokens", p.n_tokens },
                                        { "finish_reason", p.finish_reason },
                                        { "latency_ms", number_or_null(p.latency_ms) },
                                        { "layer_applications", p.layer_applications } }) +
                 "\n";
    }
    return lines;
}

std::vector<Evaluation> read_evaluations(const std::string & path) {
    std::ifstream file(path);
    if (!file || std::filesystem::is_directory(path)) {
        throw Error(ErrorKind::not_found, path + ": " + (file ? "is a directory" : "cannot open"), file_hint);
    }
    std::vector<Evaluation> evaluations;
    struct Run {
        std::string             method, task; // files of version 0.2 name no task
        int                     default_steps = 0;
        std::vector<Prediction> predictions;
    };
    std::map<int64_t, Run>                          runs; // of predictions
    std::set<std::tuple<int64_t, int, std::string>> seen;
    size_t                                          n_line = 0;
    for (std::string text; std::getline(file, text);) {
        const std::string where = path + ", line " + std::to_string(++n_line);
        if (is_blank(text)) {
            continue;
        }
        const Json object = parse_json_line(text, where);
        if (object.is_object() && object.contains("results")) {
            evaluations.push_back(read_evaluation(object, where));
            continue;
        }
        if (!object.is_object() || !object.contains("correct")) {
            throw Error(ErrorKind::format,
                        where + ": neither output of penelope eval --json nor a line of its --predictions", file_hint);
        }
        const int64_t run = json_find<int64_t>(object, "run", where).value_or(1);
        Prediction    p   = read_prediction(object, where);
        if (!seen.insert({ run, p.n_steps, p.id }).second) {
            throw Error(ErrorKind::format,
                        where + ": duplicate id " + in_quotes(p.id) + " at K=" + std::to_string(p.n_steps),
                        "a file has each question once per run and K");
        }
        Run & of = runs[run];
        of.predictions.push_back(std::move(p));
        of.method        = json_get<std::string>(object, "method", where);
        of.task          = json_find<std::string>(object, "task", where).value_or("");
        of.default_steps = int(json_get<int64_t>(object, "default_K", where));
    }
    for (auto & [number, run] : runs) {
        evaluations.push_back(from_predictions(std::move(run.predictions), run.task));
        evaluations.back().method        = run.method;
        evaluations.back().default_steps = run.default_steps;
    }
    if (evaluations.empty()) {
        throw Error(ErrorKind::format, path + ": is empty", file_hint);
    }
    return evaluations;
}

} // namespace penelope
