#include "learn/scorer.h"

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/error.h"
#include "infer/engine.h"
#include "task/evaluation_file.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr int    kBatch          = 8;
constexpr size_t kTimedQuestions = 8; // to measure how long one takes

} // namespace

std::shared_ptr<const Engine> load_files(const ModelFiles & files, const Backend & backend) {
    LoadOptions load;
    load.base    = files.base;
    load.sidecar = files.sidecar;
    load.device  = backend.device().name;
    if (!files.lora.empty()) {
        load.loras.push_back({ files.lora, 1.0f });
    }
    return Engine::load(load);
}

Scorer::Scorer(std::string folder, const Backend & backend, const AnswerReader & reader,
               std::function<void(const std::string &, double)> progress, std::function<bool()> stop)
    : folder_(std::move(folder)), backend_(backend), reader_(reader), progress_(std::move(progress)),
      stop_(std::move(stop)) {
    fs::create_directories(folder_);
}

Evaluation Scorer::evaluate_job(const ScoringJob & job, const std::vector<Example> & questions) const {
    SessionOptions how;
    how.n_threads    = backend_.n_threads();
    how.kv_type      = GGML_TYPE_F32; // as in training
    how.n_streams    = int(std::min<size_t>(kBatch, questions.size()));
    how.swap_latents = job.swap_latents;
    how.n_ctx        = job.n_context;
    Session         session(load_files(job.files, backend_), how);
    EvaluateOptions options;
    options.steps             = job.steps;
    options.n_predict         = job.n_predict;
    options.n_batch           = kBatch;
    options.n_latency_samples = job.n_latency;
    EvaluateEvents events;
    events.progress = [&](double share) {
        progress_(job.name, share);
        return !stop_();
    };
    Evaluation result = evaluate(session, reader_, questions, options, events);
    if (result.interrupted) {
        throw Error(ErrorKind::cancelled, "interrupted while scoring " + job.name);
    }
    return result;
}

Evaluation Scorer::run(const ScoringJob & job, const std::vector<Example> & questions) const {
    const std::string scores = (fs::path(folder_) / (job.name + ".json")).string();
    const std::string lines  = (fs::path(folder_) / (job.name + ".jsonl")).string();
    if (fs::exists(scores) && fs::exists(lines)) {
        Evaluation held  = read_evaluations(scores).front();
        held.predictions = read_evaluations(lines).front().predictions;
        return held;
    }
    const Evaluation result = evaluate_job(job, questions);
    write_file(lines, prediction_lines(result, 1), true);
    write_file(scores, dump_json(evaluation_json(result)) + "\n", true); // last: it says that both are there
    return result;
}

double Scorer::seconds_per_question(const ScoringJob & job, const std::vector<Example> & questions) const {
    ScoringJob timed               = job;
    timed.n_latency                = 0;
    const std::vector<Example> few = spread_sample(questions, kTimedQuestions);
    const Stopwatch            watch;
    evaluate_job(timed, few);
    return watch.elapsed_ms() / 1000 / double(few.size());
}

ScoredLine scored_line(const Evaluation & evaluation, int n_steps, int n_layer) {
    ScoredLine          line;
    std::vector<double> latencies;
    for (const Prediction & p : evaluation.predictions) {
        if (p.n_steps == n_steps) {
            line.n++;
            line.em += p.correct;
            if (p.latency_ms >= 0) {
                latencies.push_back(p.latency_ms);
            }
            line.output_tokens += p.n_tokens;
            line.layer_applications += p.layer_applications + double(std::max(0, p.n_tokens - 1)) * n_layer;
        }
    }
    const double n = double(std::max<size_t>(1, line.n));
    for (double * sum : { &line.em, &line.output_tokens, &line.layer_applications }) {
        *sum /= n;
    }
    std::tie(line.low, line.high) = wilson_interval(line.em, line.n);
    if (!latencies.empty()) { // the median: other work on the machine must not decide
        std::nth_element(latencies.begin(), latencies.begin() + std::ptrdiff_t(latencies.size() / 2), latencies.end());
        line.latency_ms = latencies[latencies.size() / 2];
    }
    return line;
}

std::vector<Example> spread_sample(const std::vector<Example> & questions, size_t n) {
    if (n >= questions.size()) {
        return questions;
    }
    std::vector<Example> sample;
    for (size_t i = 0; i < n; i++) {
        sample.push_back(questions[(2 * i + 1) * questions.size() / (2 * n)]);
    }
    return sample;
}

} // namespace penelope
