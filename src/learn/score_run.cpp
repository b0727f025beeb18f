#include "learn/score_run.h"

#include "base/error.h"
#include "infer/engine.h"
#include "sidecar/halting_threshold.h"
#include "sidecar/sidecar.h"
#include "task/calibrate_halting.h"
#include "task/example_format.h"
#include "task/example_prompt.h"
#include "text/prompt_format.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr size_t kFewestScored = 50;  // questions that are scored however short the time is
constexpr size_t kBaseScored   = 100; // of the untouched base, which writes until it is cut off
constexpr size_t kSamples      = 10;
constexpr size_t kFewQuestions = 100; // below this it is said
constexpr int    kAnswerSlack  = 8;

const Prediction * find_prediction(const Evaluation & run, const Example & example, int n_steps) {
    for (const Prediction & p : run.predictions) {
        if (p.n_steps == n_steps && p.id == example.id && p.question == example.question) {
            return &p;
        }
    }
    return nullptr;
}

// b minus a on the questions both answered.
PairedDifference paired(const Evaluation & a, int a_steps, const Evaluation & b, int b_steps) {
    const std::vector<Outcome> all_a = outcomes_of({ a }, a_steps, "scores").questions;
    const std::vector<Outcome> all_b = outcomes_of({ b }, b_steps, "scores").questions;
    std::map<std::pair<std::string, std::string>, const Outcome *> by_question;
    for (const Outcome & outcome : all_a) {
        by_question[{ outcome.id, outcome.question }] = &outcome;
    }
    std::vector<Outcome> in_a, in_b;
    for (const Outcome & outcome : all_b) {
        if (const auto found = by_question.find({ outcome.id, outcome.question }); found != by_question.end()) {
            in_a.push_back(*found->second);
            in_b.push_back(outcome);
        }
    }
    return paired_bootstrap(in_a, in_b);
}

std::vector<int> all_steps(int last) {
    std::vector<int> steps(size_t(last) + 1);
    std::iota(steps.begin(), steps.end(), 0);
    return steps;
}

// Majority: the most frequent answer of the training examples, on the test questions.
double majority_share(const AnswerReader & reader, const std::vector<Example> & train,
                      const std::vector<Example> & questions) {
    std::map<std::string, size_t> counts;
    for (const Example & example : train) {
        counts[reader.gold(example)]++;
    }
    const auto best = std::max_element(counts.begin(), counts.end(),
                                       [](const auto & a, const auto & b) { return a.second < b.second; });
    size_t     n    = 0;
    for (const Example & example : questions) {
        n += reader.gold(example) == best->first;
    }
    return double(n) / double(std::max<size_t>(1, questions.size()));
}

// Everything that is scored, in the order of the table.
struct Scores {
    std::optional<Evaluation> base, visible, latent, with_auto, swapped, control;
    int                       n_steps = 0; // K of the file, chosen on validation questions
};

class ScoreRun {
  public:
    ScoreRun(const ScoreRunInput & in, LearnState & state, const LearnEvents & events)
        : in_(in), state_(state), format_(find_prompt_format(GgufReader::open(model_file()))),
          reader_(*in.data.task.task, format_ ? format_->answer_prefix : default_prefix(), Match::exact,
                  in.data.parts.train),
          scorer_(in.files.scores(), in.backend, reader_, events.scoring, events.stop) {}

    ScoredRun run() {
        calibrate();
        choose_questions();
        score_all();
        ScoredRun result;
        fill_input(result.input);
        result.rows     = rows(result.input);
        result.verdict  = judge(result.input);
        result.by_depth = by_depth();
        result.samples  = samples();
        if (questions_.size() < kFewQuestions) {
            result.note = "scored on " + std::to_string(questions_.size()) + " questions only: the intervals are wide";
        }
        return result;
    }

  private:
    std::string model_file() const {
        const ModelFiles files = in_.files.stage_files(LearnStage::visible);
        return files.lora.empty() ? files.base : files.lora;
    }

    std::string default_prefix() const { return format_of(in_.data.parts.train.front().kind).answer_prefix; }

    int n_answer() const { return int(in_.facts.n_answer) + kAnswerSlack; }
    // Examples longer than a session holds by default.
    int n_context() const {
        constexpr int kDefaultContext = 4096, kLatentRows = 34;
        const int     n = int(in_.facts.n_prompt) + n_trace() + kLatentRows;
        return n > kDefaultContext ? n : 0;
    }
    int n_trace() const { return int(in_.facts.n_target) + kAnswerSlack; }

    ScoringJob visible_job() const {
        return { "visible", in_.files.stage_files(LearnStage::visible), {}, false, n_trace(), n_context() };
    }
    ScoringJob latent_job() const {
        return {
            "latent",   in_.files.stage_files(LearnStage::latent), all_steps(in_.n_latent_steps), false, n_answer(),
            n_context()
        };
    }

    // The threshold of -K auto, on validation questions. Written once.
    void calibrate() {
        if (!in_.has_latent || in_.options.is_paper || fs::exists(in_.files.halting_sidecar())) {
            return;
        }
        const std::string   sidecar = (fs::path(in_.files.folder(LearnStage::latent)) / "model.gguf").string();
        const SidecarConfig config  = read_sidecar_config(GgufReader::open(sidecar));
        ScoringJob          job     = latent_job();
        job.name                    = "halting";
        job.steps                   = all_steps(int(config.k_max));
        job.n_latency               = 0;
        const Evaluation run        = scorer_.run(job, in_.data.parts.valid);
        // -K auto needs the cosines, which the files of an earlier call do not have: then it is left out.
        const bool has_cosines = std::any_of(run.predictions.begin(), run.predictions.end(),
                                             [](const Prediction & p) { return p.step_cosine > -1; });
        if (!has_cosines) {
            return;
        }
        const HaltingCalibration choice = calibrate_halting(run.predictions, int(config.k_default));
        if (choice.threshold != 0) {
            write_halt_cosine(sidecar, choice.threshold, in_.files.halting_sidecar(), true);
        }
    }

    // As many test questions as the time allows.
    void choose_questions() {
        const std::vector<Example> & test = in_.data.parts.test;
        if (state_.n_questions == 0) {
            const double trace  = scorer_.seconds_per_question(visible_job(), test);
            const double latent = in_.has_latent ? scorer_.seconds_per_question(latent_job(), test) : 0;
            const double each   = trace + latent * (in_.has_control ? 3 : 2.5);
            const double base   = in_.has_base ? trace * kBaseScored : 0;
            const double n      = (in_.seconds - base) / std::max(1e-6, each);
            state_.n_questions =
                size_t(std::clamp(n, double(std::min(kFewestScored, test.size())), double(test.size())));
        }
        questions_ = spread_sample(test, state_.n_questions);
    }

    void score_all() {
        scores_.visible = scorer_.run(visible_job(), questions_);
        if (in_.has_latent) {
            ScoringJob job   = latent_job();
            scores_.latent   = scorer_.run(job, questions_);
            scores_.n_steps  = scores_.latent->default_steps;
            job.name         = "swapped";
            job.steps        = { scores_.n_steps };
            job.n_latency    = 0;
            job.swap_latents = true;
            if (questions_.size() > 1) {
                scores_.swapped = scorer_.run(job, questions_);
            }
            if (fs::exists(in_.files.halting_sidecar())) {
                scores_.with_auto =
                    scorer_.run({ "auto", job.files, { kAutoSteps }, false, n_answer(), n_context() }, questions_);
            }
        }
        if (in_.has_control) {
            scores_.control = scorer_.run(
                { "control", in_.files.stage_files(LearnStage::control), { 0 }, false, n_answer(), n_context() },
                questions_);
        }
        if (in_.has_base) {
            scores_.base = scorer_.run({ "base", in_.files.base_files(), {}, false, n_trace(), n_context() },
                                       spread_sample(questions_, kBaseScored));
        }
    }

    ScoredLine line(const Evaluation & run, int n_steps) const { return scored_line(run, n_steps, in_.n_layer); }
    int        steps_of(const Evaluation & run) const { return run.scores.front().n_steps; }

    void fill_input(VerdictInput & v) const {
        v.majority  = majority_share(reader_, in_.data.parts.train, questions_);
        v.n_steps   = scores_.n_steps;
        v.has_steps = no_steps_reason(in_.data).empty();
        v.visible   = line(*scores_.visible, steps_of(*scores_.visible));
        if (scores_.base) {
            v.base = line(*scores_.base, steps_of(*scores_.base));
            v.base_to_visible =
                paired(*scores_.base, steps_of(*scores_.base), *scores_.visible, steps_of(*scores_.visible));
        }
        if (scores_.latent) {
            v.latent = line(*scores_.latent, scores_.n_steps);
        }
        if (scores_.control) {
            v.control           = line(*scores_.control, 0);
            v.control_to_latent = paired(*scores_.control, 0, *scores_.latent, scores_.n_steps);
        }
        if (scores_.swapped) {
            v.swapped           = line(*scores_.swapped, scores_.n_steps);
            v.swapped_to_latent = paired(*scores_.swapped, scores_.n_steps, *scores_.latent, scores_.n_steps);
        }
    }

    std::vector<ScoreRow> rows(const VerdictInput & v) const {
        std::vector<ScoreRow> table;
        ScoredLine            majority;
        majority.n                            = questions_.size();
        majority.em                           = v.majority;
        std::tie(majority.low, majority.high) = wilson_interval(majority.em, majority.n);
        majority.layer_applications           = NAN;
        table.push_back({ "most frequent answer", majority });
        if (v.base) {
            table.push_back({ "base, untouched", *v.base });
        }
        table.push_back({ v.has_steps ? "written steps" : "trained", *v.visible });
        if (v.control) {
            table.push_back({ "control, no steps", *v.control });
        }
        for (const Score & s : scores_.latent ? scores_.latent->scores : std::vector<Score>{}) {
            table.push_back({ "latent K=" + std::to_string(s.n_steps), line(*scores_.latent, s.n_steps),
                              s.n_steps == scores_.n_steps });
        }
        if (scores_.with_auto) {
            table.push_back({ "latent K=auto", line(*scores_.with_auto, kAutoSteps) });
        }
        if (v.swapped) {
            table.push_back({ "latent, memory swapped", *v.swapped });
        }
        return table;
    }

    std::vector<ScoredRun::ByDepth> by_depth() const {
        std::map<size_t, std::vector<const Example *>> depths;
        for (const Example & example : questions_) {
            depths[example.steps.size()].push_back(&example);
        }
        const auto share = [&](const std::optional<Evaluation> & run, int n_steps,
                               const std::vector<const Example *> & examples) {
            double n_right = 0;
            for (const Example * example : run ? examples : std::vector<const Example *>{}) {
                const Prediction * p = find_prediction(*run, *example, n_steps);
                n_right += p && p->correct;
            }
            return run ? n_right / double(examples.size()) : NAN;
        };
        std::vector<ScoredRun::ByDepth> all;
        for (const auto & [n_steps, examples] : depths) {
            all.push_back({ n_steps, examples.size(), share(scores_.visible, steps_of(*scores_.visible), examples),
                            share(scores_.latent, scores_.n_steps, examples), share(scores_.control, 0, examples) });
        }
        return all;
    }

    std::vector<SampleAnswer> samples() const {
        std::vector<SampleAnswer> all;
        std::unique_ptr<Session>  session;
        if (in_.has_latent) {
            SessionOptions how;
            how.n_threads = in_.backend.n_threads();
            how.kv_type   = GGML_TYPE_F32;
            session =
                std::make_unique<Session>(load_files(in_.files.stage_files(LearnStage::latent), in_.backend), how);
        }
        // Of those the base answered too.
        for (const Example & example : spread_sample(spread_sample(questions_, kBaseScored), kSamples)) {
            SampleAnswer sample;
            sample.question   = example.question;
            sample.gold       = example.answer;
            sample.gold_steps = example.steps;
            const auto take   = [&](const std::optional<Evaluation> & run, int n_steps, std::string & text,
                                  bool & is_right) {
                const Prediction * p = run ? find_prediction(*run, example, n_steps) : nullptr;
                text                 = p ? p->text : "";
                is_right             = p && p->correct;
            };
            take(scores_.base, scores_.base ? steps_of(*scores_.base) : 0, sample.base, sample.base_right);
            take(scores_.visible, steps_of(*scores_.visible), sample.visible, sample.visible_right);
            take(scores_.latent, scores_.n_steps, sample.latent, sample.latent_right);
            take(scores_.control, 0, sample.control, sample.control_right);
            if (session) {
                sample.latent_steps = decoded_steps(*session, example);
            }
            all.push_back(std::move(sample));
        }
        return all;
    }

    // The most likely token of each memory row that holds a result, after every latent step.
    std::vector<std::string> decoded_steps(Session & session, const Example & example) const {
        const PromptFormat *     format = session.engine().prompt_format();
        const ExamplePrompts     prompts(session.engine().tokenizer(),
                                     format ? format->prompt_template : format_of(example.kind).prompt_template);
        std::vector<std::string> steps;
        for (const TraceStep & step : session.trace(prompts.tokens(example), scores_.n_steps)) {
            std::string text;
            for (size_t row = 0; row < std::min(step.features_top.size(), in_.facts.n_result_tokens); row++) {
                const TokenScore & best = step.features_top[row].front();
                if (best.token == session.engine().tokenizer().eos().value_or(-1)) {
                    break;
                }
                text += best.text;
            }
            if (step.t > 0) {
                steps.push_back(text);
            }
        }
        return steps;
    }

    const ScoreRunInput &       in_;
    LearnState &                state_;
    std::optional<PromptFormat> format_;
    AnswerReader                reader_;
    Scorer                      scorer_;
    std::vector<Example>        questions_;
    Scores                      scores_;
};

} // namespace

ScoredRun score_run(const ScoreRunInput & input, LearnState & state, const LearnEvents & events) {
    return ScoreRun(input, state, events).run();
}

} // namespace penelope
