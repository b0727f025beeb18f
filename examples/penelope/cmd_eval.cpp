// penelope eval: exact match of a model on a file of questions, at one or several K, and several sidecars side by side.
#include "commands.h"
#include "eval_compare.h"
#include "eval_output.h"
#include "interrupt.h"
#include "model_setup.h"

#include "append_only_file.h"
#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/format.h"
#include "gguf/reader.h"
#include "sidecar/halting_threshold.h"
#include "sidecar/sidecar.h"
#include "task/calibrate_halting.h"
#include "task/choose_reader.h"
#include "task/evaluate.h"
#include "task/evaluation_file.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <optional>

namespace penelope {

namespace {

// The file of --predictions. Lines are appended as questions are answered (shortest first); at the end the file is
// rewritten in the order of the questions, with latencies. Write errors are reported after the scores are printed.
class PredictionFile {
  public:
    PredictionFile(const std::string & path, bool force) : file_(path, force), force_(force) {}

    const std::string & path() const { return file_.path(); }
    void                next_run() { n_run_++; }

    void add(const Evaluation & batch) {
        try {
            if (!failed_) {
                file_.append(prediction_lines(batch, n_run_));
                n_lines_ += batch.predictions.size();
            }
        } catch (const Error &) {
            failed_ = true;
        }
    }

    void finish(const std::vector<Evaluation> & runs) const {
        std::string all;
        size_t      n_all = 0;
        for (size_t i = 0; i < runs.size(); i++) {
            all += prediction_lines(runs[i], i + 1);
            n_all += runs[i].predictions.size();
        }
        try {
            if (n_all > 0) {
                write_file(path(), all, force_ || file_.is_open());
            }
        } catch (const Error & error) {
            throw Error(error.kind, error.message(),
                        std::to_string(n_lines_) + " of " + std::to_string(n_all) + " predictions were written");
        }
    }

  private:
    AppendOnlyFile file_;
    size_t         n_run_ = 0, n_lines_ = 0;
    bool           failed_ = false, force_;
};

// How answers are parsed: by flags, else as stored in the model file, else recognized by the questions.
struct AnswerOptions {
    std::string task, match;
};

AnswerReader answer_reader(const AnswerOptions & answer_options, const Engine & engine,
                           const std::vector<Example> & examples, Terminal & terminal) {
    ReaderChoice chosen = choose_reader(answer_options.task, answer_options.match, engine.prompt_format(), examples);
    terminal.tell(task_line(chosen.choice));
    return std::move(chosen.reader);
}

Evaluation evaluate_one(const Options & options, Terminal & terminal, const std::string & adapter,
                        const std::vector<Example> & examples, const AnswerOptions & answer_options,
                        const std::vector<int> & steps, PredictionFile * file) {
    const auto engine = adapter.empty() ? load_engine(options, terminal) : load_engine(options, terminal, adapter);
    check_method_supported(*engine, options.flag("cot") ? "cot" : "", -1, options.flag("ignore-mismatch"));
    const int      n_batch = static_cast<int>(options.integer("batch-size"));
    SessionOptions how     = session_options(options, n_batch);
    how.swap_latents       = options.flag("swap-latents");
    Session         session(engine, how);
    EvaluateOptions evaluation;
    evaluation.method = options.flag("cot") ? "cot" : "";
    evaluation.steps  = steps;
    std::sort(evaluation.steps.begin(), evaluation.steps.end());
    evaluation.steps.erase(std::unique(evaluation.steps.begin(), evaluation.steps.end()), evaluation.steps.end());
    evaluation.n_latency_samples = static_cast<int>(options.integer("latency-samples"));
    evaluation.n_predict         = static_cast<int>(options.integer("predict"));
    evaluation.n_batch           = n_batch;

    const Stopwatch         watch;
    const CancelOnInterrupt stop = cancel_on_interrupt(session);
    EvaluateEvents          events;
    events.progress = [&](double share) {
        terminal.progress(std::to_string(int(100 * share)) + " % of " + std::to_string(examples.size()) +
                          " questions, " + format_duration(watch.elapsed_ms() * (1 - share) / share) + " left");
        return interrupt_count() == 0;
    };
    if (file) {
        events.answered = [&](const Evaluation & batch) { file->add(batch); };
    }
    Evaluation result =
        evaluate(session, answer_reader(answer_options, *engine, examples, terminal), examples, evaluation, events);
    terminal.progress("");
    return result;
}

// The files of --sidecars, "A,B" counting as two; without the flag one "", which means --sidecar and --lora. Every file
// is opened here, so that a wrong name is reported before the evaluation starts.
std::vector<std::string> adapters_of(const Options & options) {
    std::vector<std::string> files;
    for (const std::string & value : options.list("sidecars")) {
        for (const std::string & part : split(value + ",", ',')) {
            if (part.empty()) {
                throw UsageError("--sidecars: '" + value + "' contains an empty file name",
                                 "e.g. --sidecars a.gguf,b.gguf");
            }
            GgufReader::open(part);
            files.push_back(part);
        }
    }
    for (const char * other : { "sidecar", "lora" }) {
        if (!files.empty() && options.given(other)) {
            throw UsageError(std::string("--sidecars: cannot be combined with --") + other,
                             "name all files with --sidecars");
        }
    }
    return files.empty() ? std::vector<std::string>{ "" } : files;
}

// Evaluates every K, picks the threshold that saves the most steps and writes a copy of the sidecar with it.
int run_halting_calibration(const Options & options, Terminal & terminal, const std::vector<Example> & examples,
                            const AnswerOptions & answer_options) {
    const std::string source = options.given("sidecar") ? options.text("sidecar") : options.text("model");
    const auto        config = read_sidecar_config(GgufReader::open(source));
    if (options.given("latent-steps") || options.given("sidecars") || options.flag("cot")) {
        throw UsageError("--calibrate-halting: evaluates every K of one sidecar", "remove -K, --sidecars and --cot");
    }
    if (!options.flag("force") && std::filesystem::exists(options.text("calibrate-halting"))) {
        throw Error(ErrorKind::io, options.text("calibrate-halting") + ": already exists", "--force replaces it");
    }
    std::vector<int> steps(size_t(config.k_max) + 1);
    std::iota(steps.begin(), steps.end(), 0);
    const Evaluation run = evaluate_one(options, terminal, "", examples, answer_options, steps, nullptr);
    if (run.interrupted) {
        throw Error(ErrorKind::cancelled, "--calibrate-halting: interrupted, no file was written");
    }
    const HaltingCalibration choice = calibrate_halting(run.predictions, int(config.k_default));
    if (choice.threshold == 0) {
        throw Error(ErrorKind::unsupported,
                    "--calibrate-halting: no threshold reaches the exact match of K=" +
                        std::to_string(choice.n_reference),
                    "use a fixed -K with this file");
    }
    write_halt_cosine(source, choice.threshold, options.text("calibrate-halting"), options.flag("force"));
    if (options.flag("json")) {
        terminal.line(dump_json(OrderedJson{ { "status", "ok" },
                                             { "file", options.text("calibrate-halting") },
                                             { "halt_cosine", choice.threshold },
                                             { "em", choice.exact },
                                             { "steps", choice.n_steps_taken },
                                             { "reference_K", choice.n_reference },
                                             { "reference_em", choice.reference } }));
        return 0;
    }
    char text[256];
    std::snprintf(text, sizeof(text), "halting threshold (cosine) %.5f: EM %s with %.2f steps on average, %s with K=%d",
                  double(choice.threshold), percent(choice.exact).c_str(), choice.n_steps_taken,
                  percent(choice.reference).c_str(), choice.n_reference);
    terminal.line(text);
    return 0;
}

} // namespace

int cmd_eval(const Options & options, Terminal & terminal) {
    if (options.given("compare")) {
        return compare_predictions(options, terminal);
    }
    if (options.given("with")) {
        throw UsageError("'" + options.text("with") + "': unexpected argument", "the questions are given with --data");
    }
    options.required("model");
    std::vector<Example> examples = read_examples(options.required("data"));
    if (options.given("limit")) {
        examples.resize(std::min(examples.size(), static_cast<size_t>(options.integer("limit"))));
    }
    const AnswerOptions answer_options{ options.text("task"), options.text("match") };
    if (!answer_options.task.empty()) {
        choose_task(answer_options.task, answer_options.match,
                    examples); // fails on a wrong --match before the model is loaded
    }

    if (options.given("calibrate-halting")) {
        return run_halting_calibration(options, terminal, examples, answer_options);
    }

    // Checked before the evaluation starts, so that no work is lost.
    std::optional<PredictionFile> file;
    if (options.given("predictions")) {
        file.emplace(options.text("predictions"), options.flag("force"));
    }

    std::vector<Evaluation>  runs;
    std::vector<std::string> names;
    for (const std::string & adapter : adapters_of(options)) {
        if (file) {
            file->next_run();
        }
        runs.push_back(evaluate_one(options, terminal, adapter, examples, answer_options, options.steps("latent-steps"),
                                    file ? &*file : nullptr));
        const std::string & name = adapter.empty() ? options.text("sidecar") : adapter;
        names.push_back(name.empty() ? runs.back().method : name);
        if (runs.back().interrupted) {
            break;
        }
    }
    // Scores first: a full disk must not lose them.
    int code = 0;
    if (runs.back().interrupted) {
        code = print_interrupted(runs, names, file ? file->path() : "", options, terminal);
    } else {
        print_runs(runs, names, options, terminal);
    }
    if (file) {
        file->finish(runs);
    }
    return code;
}

} // namespace penelope
