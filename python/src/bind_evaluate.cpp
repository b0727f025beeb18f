// Evaluation of a model on questions, and the generated data of the tasks.
#include "bindings.h"
#include "worker.h"

#include "base/format.h"
#include "task/choose_reader.h"
#include "task/dataset_files.h"
#include "task/evaluate.h"
#include "task/evaluation_file.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>

namespace nb = nanobind;

namespace penelope::python {

namespace {

struct EvaluationRequest {
    std::string      path, text; // of the examples: a file, or JSON Lines if there is no path
    std::vector<int> latent_steps;
    std::string      method, task, match;
    int              limit = 0, max_tokens = -1, batch_size = 8, latency_samples = 0;
    int              n_ctx = 0, n_threads = 0;
};

// Scores and predictions as JSON, the first an object, the second one a line.
std::pair<std::string, std::string> run_evaluation(const std::shared_ptr<Model> & model,
                                                   const EvaluationRequest & request, const nb::object & progress) {
    std::vector<Example> examples =
        request.path.empty() ? parse_examples(request.text, "examples") : read_examples(request.path);
    if (request.limit > 0) {
        examples.resize(std::min(examples.size(), size_t(request.limit)));
    }
    const ReaderChoice chosen = choose_reader(request.task, request.match, model->engine()->prompt_format(), examples);
    EvaluateOptions    options;
    options.method            = request.method;
    options.steps             = request.latent_steps;
    options.n_predict         = request.max_tokens;
    options.n_batch           = request.batch_size;
    options.n_latency_samples = request.latency_samples;

    SessionOptions how;
    how.n_ctx     = request.n_ctx;
    how.n_threads = request.n_threads;
    how.n_streams = request.batch_size;
    Session             session(model->engine(), how);
    Evaluation          result;
    std::atomic<double> share{ 0 };
    EvaluateEvents      events;
    events.progress = [&](double now) {
        share = now;
        return true;
    };
    double shown = 0;
    Worker worker;
    worker.run([&] { result = evaluate(session, chosen.reader, examples, options, events); }, [&] { session.cancel(); },
               [&] {
                   if (!progress.is_none() && share > shown) {
                       shown = share;
                       progress(shown);
                   }
               });
    return { dump_json(evaluation_json(result)), prediction_lines(result, 1) };
}

const Task & task_with_generator(const std::string & name) {
    std::vector<std::string> known;
    for (const Task & task : tasks()) {
        if (name == task.name) {
            return task;
        }
        known.emplace_back(task.name);
    }
    throw Error(ErrorKind::usage, "task: no generator of " + in_quotes(name), "tasks: " + join(known, ", "));
}

void make_data(const std::string & task, const std::string & out, std::optional<size_t> n_train,
               std::optional<size_t> n_valid, std::optional<size_t> n_test, uint64_t seed,
               std::optional<std::pair<int, int>> depth, std::optional<std::pair<int, int>> test_depth, bool force) {
    const Task &   maker   = task_with_generator(task);
    DatasetOptions options = maker.defaults;
    options.seed           = seed;
    options.n_train        = n_train.value_or(options.n_train);
    options.n_valid        = n_valid.value_or(options.n_valid);
    options.n_test         = n_test.value_or(options.n_test);
    if (depth) {
        options.depth = options.test_depth = { depth->first, depth->second };
    }
    if (test_depth) {
        options.test_depth = { test_depth->first, test_depth->second };
    }
    write_dataset(maker, options, out, force);
}

} // namespace

void bind_evaluate(nb::module_ & m) {
    nb::class_<EvaluationRequest>(m, "EvaluationRequest")
        .def(nb::init<>())
        .def_rw("path", &EvaluationRequest::path)
        .def_rw("text", &EvaluationRequest::text)
        .def_rw("latent_steps", &EvaluationRequest::latent_steps)
        .def_rw("method", &EvaluationRequest::method)
        .def_rw("task", &EvaluationRequest::task)
        .def_rw("match", &EvaluationRequest::match)
        .def_rw("limit", &EvaluationRequest::limit)
        .def_rw("max_tokens", &EvaluationRequest::max_tokens)
        .def_rw("batch_size", &EvaluationRequest::batch_size)
        .def_rw("latency_samples", &EvaluationRequest::latency_samples)
        .def_rw("n_ctx", &EvaluationRequest::n_ctx)
        .def_rw("n_threads", &EvaluationRequest::n_threads);
    m.def("evaluate", &run_evaluation, nb::arg("model"), nb::arg("request"), nb::arg("progress").none());
    m.def("make_data", &make_data, nb::arg("task"), nb::arg("out"), nb::arg("n_train").none(),
          nb::arg("n_valid").none(), nb::arg("n_test").none(), nb::arg("seed"), nb::arg("depth").none(),
          nb::arg("test_depth").none(), nb::arg("force"), nb::call_guard<nb::gil_scoped_release>());
}

} // namespace penelope::python
