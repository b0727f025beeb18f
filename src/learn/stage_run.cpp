#include "learn/stage_run.h"

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "learn/learn_data.h"
#include "train/open_run.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr size_t kProbeQuestions = 4;

size_t bytes_of(const Example & example) {
    size_t n = example.question.size() + example.answer.size();
    for (const std::string & step : example.steps) {
        n += step.size() + 1;
    }
    return n;
}

std::vector<Example> sample_of(const std::vector<Example> & examples, size_t n, uint64_t seed) {
    std::vector<Example> sample;
    const auto longest = std::max_element(examples.begin(), examples.end(), [](const Example & a, const Example & b) {
        return bytes_of(a) < bytes_of(b);
    });
    const auto deepest = std::max_element(examples.begin(), examples.end(), [](const Example & a, const Example & b) {
        return a.steps.size() < b.steps.size();
    });
    std::vector<size_t> order(examples.size());
    std::iota(order.begin(), order.end(), size_t(0));
    Rng rng(seed, stream_id("probe"));
    rng.shuffle(order);
    sample.push_back(*longest);
    if (deepest != longest) {
        sample.push_back(*deepest);
    }
    for (size_t i = 0; i < order.size() && sample.size() < n; i++) {
        const Example & example = examples[order[i]];
        if (&example != &*longest && &example != &*deepest) {
            sample.push_back(example);
        }
    }
    return sample;
}

// Sequential layer applications of a latent stage at K steps, which its time is in proportion to.
double cost(const TrainSettings & s, double n_steps, int n_layer) {
    const double n_interval = double(s.model.sidecar.interval_end) - double(s.model.sidecar.interval_start);
    return double(n_layer) + (n_steps + 1) * std::max(0.0, n_interval);
}

// Mean K over the updates: drawn from 1 .. K; deep: with weight K; staged: half of the updates over 1 .. K, half at K.
double mean_steps(const TrainSettings & s) {
    const double most = s.latent_steps, drawn = (1 + most) / 2;
    return most == 0                  ? 0
           : s.k_schedule == "staged" ? (drawn + most) / 2
           : s.k_schedule == "deep"   ? (2 * most + 1) / 3
                                      : drawn;
}

} // namespace

StageProbe probe_stage(TrainSettings settings, const Dataset & parts, const std::string & scratch,
                       const Backend & backend, const std::function<bool()> & stop) {
    struct Removed {
        const std::string & path;
        ~Removed() {
            std::error_code ignored;
            fs::remove_all(path, ignored);
        }
    };
    fs::remove_all(scratch);
    const Removed removed{ scratch };
    Dataset       sample;
    sample.train =
        sample_of(parts.train, size_t(settings.batch_size) * size_t(settings.n_updates), settings.model.seed);
    sample.valid.assign(parts.valid.begin(),
                        parts.valid.begin() + std::ptrdiff_t(std::min(kProbeQuestions, parts.valid.size())));
    const fs::path data = fs::path(scratch) / "data";
    fs::create_directories(data);
    write_file((data / "train.jsonl").string(), examples_to_jsonl(sample.train), true);
    write_file((data / "valid.jsonl").string(), examples_to_jsonl(sample.valid), true);
    settings.data = data.string();
    settings.out  = (fs::path(scratch) / "run").string();

    const std::unique_ptr<Collective> one      = single_process();
    OpenRun                           run      = open_run(settings, {}, backend, *one);
    const TrainPlan                   plan     = run.trainer->plan();
    const TrainSettings &             resolved = run.trainer->settings();
    const int                         n_layer  = run.trainer->model().backbone().config.n_layer;

    StageProbe          probe;
    std::vector<double> ms; // of an update at the mean K
    Stopwatch           validating;
    TrainEvents         events;
    events.stop    = stop;
    events.updated = [&](const UpdateReport & report) {
        ms.push_back(report.ms * cost(resolved, mean_steps(resolved), n_layer) /
                     cost(resolved, report.stage.n_steps, n_layer));
        validating.restart();
    };
    events.validated = [&](const ValidationReport & report) {
        probe.speed.question_seconds = validating.elapsed_ms() / 1000 / double(std::max<size_t>(1, report.n_examples));
    };
    if (run.trainer->run(events, false).interrupted) {
        throw Error(ErrorKind::cancelled, "interrupted while measuring", "call it again to start over");
    }
    // The first update also makes the graph.
    const size_t n_first       = ms.size() > 1 ? 1 : 0;
    probe.speed.update_seconds = std::accumulate(ms.begin() + std::ptrdiff_t(n_first), ms.end(), 0.0) / 1000 /
                                 double(std::max<size_t>(1, ms.size() - n_first));
    probe.bytes = plan.weight_bytes + plan.optimizer_bytes + plan.graph_bytes;
    return probe;
}

TrainResult run_stage(const TrainSettings & settings, const Backend & backend, const TrainEvents & events) {
    const RunFolder folder(settings.out);
    folder.recover();
    const bool                        resume = folder.has(folder.last());
    const std::unique_ptr<Collective> one    = single_process();
    OpenRun                           run    = open_run(settings, { resume, !resume }, backend, *one);
    return run.trainer->run(events, resume);
}

} // namespace penelope
