#include "learn/learn.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "base/memory.h"
#include "learn/learn_setup.h"
#include "learn/report_page.h"
#include "learn/score_run.h"
#include "learn/stage_run.h"
#include "train/setting_table.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr double kMemoryShare = 0.95; // of what is free that a stage may need

OrderedJson result_json(const TrainResult & r) {
    return { { "updates", r.update }, { "valid_exact", r.exact }, { "K", r.k_default } };
}

class Learner {
  public:
    Learner(const LearnOptions & options, const Backend & backend, const LearnEvents & events)
        : setup_(open_learn_run(options)), options_(setup_.options), data_(setup_.data), model_(setup_.model),
          facts_(setup_.facts), state_(setup_.state), files_(*setup_.files), backend_(backend), events_(events),
          seconds_before_(setup_.state.seconds) {}

    LearnResult run();

  private:
    TrainSettings settings_of(LearnStage stage, const RecipeInput & input) const;
    RecipeInput   recipe_input(LearnStage stage, double seconds) const;
    void          measure(LearnStage stage);
    double        seconds_left() const;
    double        training_seconds() const;
    LearnPlan     plan() const;
    TrainSettings start_settings(LearnStage stage);
    bool          train(LearnStage stage);
    void          score(LearnResult & result);
    void          score_text(LearnResult & result);
    void          save();
    std::string   data_text() const;

    std::vector<LearnStage> stages() const;
    StageState &            state_of(LearnStage stage) { return state_.stages[stage_name(stage)]; }
    const StageState &      state_of(LearnStage stage) const { return state_.stages.at(stage_name(stage)); }

    Stopwatch               watch_; // of this call
    LearnSetup              setup_;
    const LearnOptions &    options_;
    const LearnData &       data_;
    const LearnModelFacts & model_;
    const LearnDataFacts &  facts_;
    LearnState &            state_;
    const RunFiles &        files_;
    const Backend &         backend_;
    const LearnEvents &     events_;
    double                  seconds_before_; // of earlier calls
};

std::vector<LearnStage> Learner::stages() const {
    std::vector<LearnStage> all{ LearnStage::visible };
    if (options_.with_latent) {
        if (has_bridge(model_, facts_) && !options_.is_paper) {
            all.push_back(LearnStage::bridge);
        }
        all.push_back(LearnStage::latent);
        if (options_.with_control) {
            all.push_back(LearnStage::control);
        }
    }
    return all;
}

// Latent and control together: equally many updates, in the time of both.
RecipeInput Learner::recipe_input(LearnStage stage, double seconds) const {
    RecipeInput input;
    input.stage   = stage;
    input.model   = model_;
    input.data    = facts_;
    input.seed    = options_.seed;
    input.seconds = seconds;
    input.speed   = state_of(stage).probe.speed;
    if ((stage == LearnStage::latent || stage == LearnStage::control) && options_.with_control) {
        const StageSpeed a = state_of(LearnStage::latent).probe.speed, b = state_of(LearnStage::control).probe.speed;
        input.speed = { a.update_seconds + b.update_seconds, a.question_seconds + b.question_seconds };
    }
    return input;
}

// The paper's settings are the trainer's own, and so is its number of updates.
TrainSettings Learner::settings_of(LearnStage stage, const RecipeInput & input) const {
    TrainSettings s = recipe_settings(input);
    if (options_.is_paper) {
        const Protocol & protocol = data_.task.task->protocol;
        const bool       is_full  = s.model.full;
        const int64_t    n_probe  = s.n_updates;
        const size_t     n        = data_.parts.train.size();
        s                         = default_settings();
        s.model.seed              = options_.seed;
        s.model.full              = is_full;
        s.model.method            = stage == LearnStage::visible ? "cot" : "penelope";
        s.latent_steps            = stage == LearnStage::control ? 0 : -1;
        s.batch_size              = protocol.batch_size;
        s.n_updates =
            input.speed.update_seconds <= 0 ? n_probe
            : stage != LearnStage::visible
                ? protocol.latent_updates
                : std::max<int64_t>(1, int64_t(std::ceil(protocol.cot_epochs * double(n) / protocol.batch_size)));
    }
    if (data_.by_perplexity) {
        s.validation.n_predict = 1; // the best weights are those of the smallest loss: nothing has to be written
    }
    s.skip_long  = true;
    s.low_memory = state_of(stage).has_low_memory;
    s.data       = files_.data();
    s.out        = files_.folder(stage);
    s.name       = fs::path(options_.out).filename().string() + "-" + stage_name(stage);
    files_.set_start(stage, s);
    return s;
}

// A few updates of the stage. If they need more memory than there is, with activation checkpointing.
void Learner::measure(LearnStage stage) {
    StageState & state = state_of(stage);
    while (!state.is_measured) {
        RecipeInput input;
        input.stage     = stage;
        input.model     = model_;
        input.data      = facts_;
        input.seed      = options_.seed;
        TrainSettings s = settings_of(stage, input);
        s.model.base    = files_.base_files().base; // the stages before it are not trained yet
        s.model.init    = "";
        state.probe     = probe_stage(s, data_.parts, files_.scratch(), backend_, events_.stop);

        const std::optional<uint64_t> available = available_memory();
        const bool is_short = available && double(state.probe.bytes) > kMemoryShare * double(*available);
        if (is_short && state.has_low_memory) {
            throw Error(ErrorKind::memory,
                        std::string("out of memory: stage '") + stage_name(stage) + "' needs " +
                            format_bytes(state.probe.bytes) + ", " + format_bytes(*available) + " free",
                        "take a smaller model or shorter examples");
        }
        state.is_measured    = !is_short;
        state.has_low_memory = is_short || state.has_low_memory;
    }
    save();
}

double Learner::seconds_left() const {
    return options_.seconds - seconds_before_ - watch_.elapsed_ms() / 1000;
}

double Learner::training_seconds() const {
    return seconds_left() - kScoringShare * options_.seconds;
}

LearnPlan Learner::plan() const {
    const std::vector<LearnStage> all = stages();
    const auto next = std::find_if(all.begin(), all.end(), [&](LearnStage stage) { return !state_of(stage).is_done; });
    const StageTimes times =
        divide_time(training_seconds(), model_, facts_, next == all.end() ? all.back() : *next, options_.with_latent);
    LearnPlan plan;
    for (LearnStage stage : all) {
        const StageState & state = state_of(stage);
        if (state.is_done) {
            continue;
        }
        const double seconds = state.seconds > 0 ? state.seconds : times.of(stage);
        PlannedStage planned{ stage, settings_of(stage, recipe_input(stage, seconds)), state.probe };
        planned.seconds = stage_seconds(planned.settings, state.probe.speed);
        plan.seconds += planned.seconds;
        plan.bytes = std::max(plan.bytes, state.probe.bytes);
        plan.stages.push_back(planned);
    }
    plan.scoring_seconds = std::min(kScoringShare * options_.seconds, std::max(0.0, seconds_left()));
    plan.seconds += plan.scoring_seconds;
    return plan;
}

void Learner::save() {
    state_.seconds = seconds_before_ + watch_.elapsed_ms() / 1000;
    write_learn_state(state_, files_.state());
}

// The time of a stage is fixed when it starts, from what is left then.
TrainSettings Learner::start_settings(LearnStage stage) {
    StageState & state = state_of(stage);
    if (state.seconds <= 0) {
        const StageTimes times = divide_time(training_seconds(), model_, facts_, stage, options_.with_latent);
        // The control gets as many updates as the latent stage.
        const bool is_pair = stage == LearnStage::control;
        state.seconds      = std::max(1e-3, is_pair ? state_of(LearnStage::latent).seconds : times.of(stage));
        save();
    }
    return settings_of(stage, recipe_input(stage, state.seconds));
}

// False: interrupted.
bool Learner::train(LearnStage stage) {
    StageState & state = state_of(stage);
    if (state.is_done) {
        return true;
    }
    const TrainSettings settings = start_settings(stage);
    double              later    = 0; // seconds of what follows
    for (const PlannedStage & other : plan().stages) {
        later += other.stage > stage ? other.seconds : 0;
    }
    later += kScoringShare * options_.seconds;
    events_.stage_started(stage, settings);
    TrainEvents events;
    events.stop              = events_.stop;
    events.updated           = [&](const UpdateReport & r) { events_.updated(stage, r, r.ms_left + 1000 * later); };
    events.validated         = [&](const ValidationReport & r) { events_.validated(stage, r); };
    const TrainResult result = run_stage(settings, backend_, events);
    if (!result.interrupted) {
        state.is_done = true;
        state.result  = result_json(result);
        events_.stage_finished(stage, result);
    }
    save();
    return !result.interrupted;
}

void Learner::score_text(LearnResult & result) {
    const ModelFiles trained = files_.stage_files(LearnStage::visible);
    events_.scoring("perplexity", 0);
    result.perplexity_before = perplexity(files_.base_files(), model_.is_new, data_.parts.test, backend_, events_.stop);
    result.perplexity_after  = perplexity(trained, trained.lora.empty(), data_.parts.test, backend_, events_.stop);
    const bool is_better     = result.perplexity_after < result.perplexity_before;
    char       numbers[96];
    std::snprintf(numbers, sizeof(numbers), "perplexity %.2f before, %.2f after, on data never trained on",
                  result.perplexity_before, result.perplexity_after);
    result.verdict = is_better ? Verdict{ BestFile::visible, std::string("The model learned: ") + numbers + ".",
                                          "Use the trained model." }
                               : Verdict{ BestFile::base, std::string("Training did not help: ") + numbers + ".",
                                          "Use the base model as it is, or give more text." };
    if (model_.is_new) {
        result.verdict.best = BestFile::visible; // there is no other
    }
    result.model_path = result.verdict.best == BestFile::base ? "" : files_.model();
    files_.write_model(result.verdict.best);
    result.commands = files_.commands(result.verdict.best);
    save();
    result.report_path = files_.report();
    write_report_page({}, result, options_, files_, stages(), result.report_path);
}

void Learner::score(LearnResult & result) {
    const int n_steps =
        options_.with_latent
            ? int(state_of(LearnStage::latent).result.value("valid_exact", OrderedJson::array()).size()) - 1
            : 0;
    const ScoreRunInput input{ options_,
                               data_,
                               facts_,
                               files_,
                               backend_,
                               !model_.is_new,
                               options_.with_latent,
                               options_.with_control,
                               std::max(0, n_steps),
                               model_.n_layer,
                               std::max(seconds_left(), kScoringShare / 2 * options_.seconds) };
    const ScoredRun     scored = score_run(input, state_, events_);
    result.rows                = scored.rows;
    result.verdict             = scored.verdict;
    if (!scored.note.empty()) {
        result.notes.push_back(scored.note);
    }
    files_.write_model(scored.verdict.best);
    result.model_path = scored.verdict.best == BestFile::base ? "" : files_.model();
    result.commands   = files_.commands(scored.verdict.best);
    save();
    result.report_path = files_.report();
    write_report_page(scored, result, options_, files_, stages(), result.report_path);
}

// "64 examples: 52 to train, 6 to validate, 6 to score; up to 2 steps, 31 tokens on average"
std::string Learner::data_text() const {
    const auto   n     = [](size_t value) { return std::to_string(value); };
    const size_t train = data_.parts.train.size(), valid = data_.parts.valid.size(), test = data_.parts.test.size();
    return n(train + valid + test) + " examples: " + n(train) + " to train, " + n(valid) + " to validate, " + n(test) +
           " to score; " + (facts_.n_steps > 0 ? "up to " + n(facts_.n_steps) + " steps, " : "") +
           n(size_t(facts_.n_mean + 0.5)) + " tokens on average; " + task_line(data_.task);
}

LearnResult Learner::run() {
    LearnResult result;
    events_.note(data_text());
    result.notes = setup_.notes;
    for (const std::string & note : result.notes) {
        events_.note(note);
    }
    try {
        for (LearnStage stage : stages()) {
            state_of(stage); // creates it
        }
        for (LearnStage stage : stages()) {
            if (!state_of(stage).is_measured) {
                events_.note(std::string("measuring ") + std::to_string(kProbeUpdates) + " updates of stage '" +
                             stage_name(stage) + "'");
                measure(stage);
            }
        }
        const LearnPlan planned = plan();
        if (!options_.is_paper && planned.seconds > 1.2 * std::max(1.0, seconds_left())) {
            events_.note("the fewest updates that make sense take longer than --time");
        }
        events_.planned(planned);
        for (LearnStage stage : stages()) {
            if (!train(stage)) {
                result.interrupted = true;
                return result;
            }
        }
        data_.by_perplexity ? score_text(result) : score(result);
    } catch (const Error & error) {
        if (error.kind != ErrorKind::cancelled) {
            throw;
        }
        result.interrupted = true;
        save();
    }
    result.seconds = state_.seconds;
    return result;
}

} // namespace

LearnResult learn(const LearnOptions & options, const Backend & backend, const LearnEvents & events) {
    return Learner(options, backend, events).run();
}

} // namespace penelope
