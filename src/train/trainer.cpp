#include "train/trainer.h"

#include "base/error.h"
#include "base/format.h"
#include "base/log.h"
#include "model/support.h"
#include "train/file_hashes.h"
#include "train/fit_modules.h"
#include "train/save_model.h"

#include <algorithm>
#include <numeric>

namespace penelope {

namespace {

constexpr int kAnyRows = 1 << 20; // results are not cut off where no memory has to hold them

} // namespace

Trainer::Trainer(const TrainSettings & settings, const Backend & backend, Collective & ranks)
    : settings_(settings), backend_(backend), ranks_(ranks), folder_(settings.out), curriculum_(1, 0, 0) {
    std::vector<Example> examples = read_examples(get_split(settings_.data, "train"));
    const GgufReader     base     = GgufReader::open(settings_.model.base);
    require_supported(base);
    task_ = resolve_settings(settings_, read_model_config(base), examples);
    build_curriculum();
    model_ = std::make_unique<TrainedModel>(settings_.model, backend);

    const SidecarConfig & sidecar = model_->sidecar();
    const TextLayout      layout{ sidecar.prompt_template, sidecar.answer_prefix };
    step_targets_ = std::make_unique<StepTargets>(find_task(sidecar.task), model_->tokenizer(),
                                                  sidecar.n_memory > 0 ? int(sidecar.n_memory) : kAnyRows);
    if (settings_.teacher_forcing > 0 || settings_.targets == "results" || settings_.fit_modules) {
        step_targets_->begin_with_start(examples);
    }
    train_ = std::make_unique<TrainingData>(std::move(examples), model_->tokenizer(), layout);
    if (const std::string path = find_split(settings_.data, "valid"); !path.empty()) {
        std::vector<Example> held_out = read_examples(path);
        reader_                       = std::make_unique<AnswerReader>(find_task(sidecar.task), sidecar.answer_prefix,
                                                 parse_match(sidecar.match), held_out);
        valid_ = std::make_unique<TrainingData>(std::move(held_out), model_->tokenizer(), layout);
    }
    check_lengths();
    log_debug("tokenized " + std::to_string(train_->n_encoded() + (valid_ ? valid_->n_encoded() : 0)) +
              " texts: prompt and target of every example");
    if (settings_.batch_size < ranks.size()) {
        throw Error(ErrorKind::usage,
                    "--batch-size " + std::to_string(settings_.batch_size) + " is smaller than the number of ranks, " +
                        std::to_string(ranks.size()),
                    "start fewer ranks, or raise --batch-size");
    }
    batch_sampler_ = std::make_unique<BatchSampler>(train_->size(), size_t(settings_.batch_size), settings_.model.seed);
    if (settings_.adaptive) {
        std::vector<size_t> depths;
        for (size_t i = 0; i < train_->size(); i++) {
            depths.push_back(train_->example(i).steps.size());
        }
        sampler_ = std::make_unique<DepthSampler>(depths, size_t(settings_.batch_size), settings_.model.seed);
    }
    AllGatherFloats gather;
    if (ranks.size() > 1) {
        gather = [&ranks](const std::vector<float> & mine) { return all_gather_floats(ranks, mine); };
    }
    graphs_ = std::make_unique<BatchGraphCache>(model_->objective(), model_->backbone(), backend, &model_->optimizer(),
                                                gather);
}

// Every example must fit the context at the first stage, where targets are longest.
void Trainer::check_lengths() {
    // The teacher writes all steps.
    const int n_skip_steps = model_->training().has_teacher ? 0 : curriculum_.stages().front().n_skip_steps;
    // Training rotates with the factors of short contexts.
    const ModelConfig & config  = model_->backbone().config;
    const int           context = config.n_ctx_short > 0 ? config.n_ctx_short : config.n_ctx_train;
    const int           most    = (settings_.max_length > 0 ? std::min(settings_.max_length, context) : context) -
                     model_->objective().n_extra_rows(settings_.latent_steps);
    const size_t n_rows = size_t(std::max(most, 0));
    for (TrainingData * data : { train_.get(), valid_.get() }) {
        if (!data) {
            continue;
        }
        if (settings_.skip_long) {
            n_dropped_ += data->drop_longer(n_rows, n_skip_steps);
        }
        const TrainingData::Longest longest = data->longest(n_skip_steps);
        if (longest.n_rows > n_rows) {
            throw Error(ErrorKind::usage,
                        "example " + in_quotes(data->example(longest.example).id) + " has " +
                            std::to_string(longest.n_rows) + " tokens, the limit is " + std::to_string(n_rows),
                        "raise --max-length, or drop longer examples with --skip-long");
        }
    }
    if (train_->size() == 0) {
        throw Error(ErrorKind::usage, settings_.data + ": no training examples left after --skip-long");
    }
}

void Trainer::validate(const TrainEvents & events) {
    const Stage &          stage = curriculum_.at(state_.progress);
    const ValidationReport score{ state_.update,
                                  stage,
                                  validator_->loss(stage),
                                  validator_->exact({ stage.n_steps }).front(),
                                  validator_->n_examples(),
                                  false };
    const BestScore &      best = state_.best;
    const bool             is_better =
        best.update == 0 || score.exact > best.exact || (score.exact == best.exact && score.loss < best.loss);
    ValidationReport shown = score;
    // Losses of earlier stages are losses on other targets: only the last one is comparable with itself.
    if (stage.is_final && is_better) {
        state_.best   = { score.update, score.exact, score.loss };
        shown.is_best = true;
        save_best();
    }
    state_.validated = state_.update;
    on_all_ranks(ranks_, [&] {
        if (ranks_.is_root()) {
            folder_.append_metrics(OrderedJson{ { "update", score.update },
                                                { "K", stage.n_steps },
                                                { "valid_loss", score.loss },
                                                { "valid_exact", score.exact },
                                                { "valid_n", score.n_examples },
                                                { "best", shown.is_best } });
            if (shown.is_best) {
                // To be tried before the end, which replaces it.
                TrainResult so_far;
                so_far.k_default = settings_.latent_steps;
                write_model(
                    so_far,
                    { { "valid",
                        { { "n", score.n_examples }, { "exact", score.exact }, { "update", score.update } } } });
            }
            events.validated(shown);
        }
    });
}

TrainResult Trainer::run(const TrainEvents & events, bool resumed) {
    state_ = RunState{};
    state_.depths.resize(sampler_ ? sampler_->depths().size() : 0);
    const std::vector<std::string> sums =
        hash_files(ranks_, { settings_.model.base, settings_.model.init, find_split(settings_.data, "train"),
                             find_split(settings_.data, "valid") });
    on_all_ranks(ranks_, [&] {
        sums_                = { sums[0], sums[1], sums[2], sums[3] };
        OrderedJson settings = settings_json(settings_, sums_, Recorded::with_model);
        settings[kRanksKey]  = ranks_.size();
        state_.settings      = dump_json(settings);
        if (valid_) {
            validator_ = std::make_unique<Validator>(*model_, *valid_, *reader_, backend_, settings_.validation, ranks_,
                                                     events.stop);
        }
    });
    check_same_settings();
    if (resumed) {
        resume();
    } else {
        if (settings_.fit_modules) {
            on_all_ranks(ranks_, [&] { fit_modules(*model_, *train_, *step_targets_, backend_); });
        }
        broadcast_parameters(ranks_, model_->optimizer(), CheckpointContents::weights);
        save_last();
        if (ranks_.is_root()) {
            folder_.discard_backup();
        }
    }
    bool is_through = false;
    try {
        is_through = train_to_end(events);
        if (is_through) {
            return finish(events);
        }
    } catch (const Error & error) {
        if (error.kind != ErrorKind::cancelled) {
            throw;
        }
        ranks_.clear_aborted();
    }
    if (!is_through) { // else the end is saved, and the weights may be the best ones by now
        save_last();
    }
    TrainResult stopped;
    stopped.interrupted = true;
    stopped.update      = state_.update;
    stopped.best        = state_.best;
    stopped.k_default   = settings_.latent_steps;
    if (state_.update > 0) {
        stopped.model_path = folder_.model();
        on_all_ranks(ranks_, [&] {
            if (ranks_.is_root() && state_.best.update == 0) { // else that of the best validation is there
                write_model(stopped, OrderedJson::object());
            }
        });
    }
    return stopped;
}

// False when a rank was asked to stop.
bool Trainer::train_to_end(const TrainEvents & events) {
    while (true) {
        if (validator_ && is_due(settings_.eval_every) && state_.validated < state_.update) {
            validate(events);
        }
        if (is_due(settings_.save_every)) {
            save_last();
        }
        if (state_.update == settings_.n_updates) {
            return true;
        }
        if (run_update(state_.update + 1, events)) {
            return false;
        }
    }
}

// After this update, every so many and at the end.
bool Trainer::is_due(int64_t every) const {
    return state_.update == settings_.n_updates || (every > 0 && state_.update > 0 && state_.update % every == 0);
}

// Takes the best weights, chooses the smallest depth that does best on validation, writes the model.
TrainResult Trainer::finish(const TrainEvents & events) {
    TrainResult outcome;
    outcome.update      = state_.update;
    outcome.k_default   = settings_.latent_steps;
    outcome.model_path  = folder_.model();
    OrderedJson results = OrderedJson::object();
    if (validator_) {
        const bool       has_best = restore_best();
        std::vector<int> depths(size_t(outcome.k_default) + 1);
        std::iota(depths.begin(), depths.end(), 0);
        ValidationOptions all = settings_.validation;
        all.limit             = 0;
        Validator whole(*model_, *valid_, *reader_, backend_, all, ranks_, events.stop);
        outcome.exact         = whole.exact(depths);
        outcome.visible_steps = whole.writes_visible_steps();
        if (!has_best) { // the weights are those of the last update
            state_.best = { state_.update, outcome.exact.back(), whole.loss(curriculum_.stages().back()) };
        }
        // K = 0 is evaluated as a control but never chosen.
        const auto first = outcome.exact.begin() + (outcome.k_default > 0 ? 1 : 0);
        if (model_->training().has_curriculum) { // else it was trained for one K only
            outcome.k_default = int(std::max_element(first, outcome.exact.end()) - outcome.exact.begin());
        }
        results = { { "valid",
                      { { "n", whole.n_examples() },
                        { "exact", outcome.exact },
                        { "best_K", outcome.k_default },
                        { "update", state_.best.update } } } };
    }
    outcome.best = state_.best;
    on_all_ranks(ranks_, [&] {
        if (ranks_.is_root()) {
            if (!outcome.exact.empty()) {
                folder_.append_metrics(OrderedJson{ { "update", state_.update },
                                                    { "exact_by_K", outcome.exact },
                                                    { "k_default", outcome.k_default },
                                                    { "valid_n", valid_->size() } });
            }
            write_model(outcome, results);
        }
    });
    return outcome;
}

// Writes the current weights.
void Trainer::write_model(const TrainResult & outcome, const OrderedJson & results) {
    SavedMetadata texts;
    texts.name          = settings_.name.empty() ? folder_.name() : settings_.name;
    texts.train_config  = state_.settings;
    texts.eval_results  = dump_json(results);
    texts.k_default     = outcome.k_default;
    texts.visible_steps = outcome.visible_steps;
    if (settings_.model.full && model_->training().format()) {
        save_sidecar_and_backbone(*model_, texts, folder_.model(), folder_.backbone());
    } else {
        save_model(*model_, texts, folder_.model());
    }
}

} // namespace penelope
