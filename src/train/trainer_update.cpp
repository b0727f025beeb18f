// One update: its examples, this rank's share of them, the step, and what is said about it.
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "train/length_buckets.h"
#include "train/lr_schedule.h"
#include "train/step_score.h"
#include "train/teacher_forcing.h"
#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace penelope {

namespace {

constexpr double kMsSmoothing  = 0.1; // share of the newest update in the mean duration
constexpr float  kScaleRetreat = 16;

// null where nobody was asked.
OrderedJson shares_json(const std::vector<double> & shares) {
    OrderedJson all = OrderedJson::array();
    for (double shard : shares) {
        all.push_back(shard < 0 ? OrderedJson(nullptr) : OrderedJson(shard));
    }
    return all;
}

} // namespace

Minibatch Trainer::minibatch(const std::vector<size_t> & examples, const Stage & stage, double step_loss_weight) const {
    Minibatch batch;
    batch.n_steps          = stage.n_steps;
    batch.step_loss_weight = step_loss_weight;
    batch.has_teacher      = model_->training().has_teacher;
    if (batch.has_teacher) {
        batch.distill_weight = settings_.distill;
    }
    for (size_t i : examples) {
        const Example &  example   = train_->example(i);
        TokenizedExample tokenized = batch.has_teacher ? train_->with_teacher(i, stage.n_skip_steps)
                                     : settings_.targets == "results"
                                         ? train_->with_chain(i, step_targets_->chain(example))
                                         : train_->tokenized(i, stage.n_skip_steps);
        // Forced steps look up everything themselves: the final pass says what the memory holds.
        tokenized.is_supervised =
            stage.supervises(step_targets_->n_needed(example), settings_.teacher_forcing > 0 ? 0 : 1);
        if (step_loss_weight > 0) {
            tokenized.step_targets = step_targets_->tokens(example, stage.n_steps);
            for (const std::vector<int32_t> & tokens : tokenized.step_targets) {
                batch.n_step_target_rows = std::max(batch.n_step_target_rows, int(tokens.size()));
            }
        }
        batch.examples.push_back(std::move(tokenized));
    }
    return batch;
}

FirstGradients Trainer::first_gradients() {
    std::vector<size_t> examples(std::min(train_->size(), size_t(settings_.batch_size)));
    std::iota(examples.begin(), examples.end(), size_t(0));
    const float     scale = model_->loss_scale();
    const Minibatch batch =
        minibatch(examples, curriculum_.draw({}, 1, settings_.model.seed), step_loss_weight(settings_, 1));
    return { graphs_->run(batch, scale).total(batch), scale };
}

// This rank's part of a minibatch, chosen so that all have about as many tokens.
Minibatch Trainer::local_shard(const Minibatch & batch) const {
    std::vector<size_t> costs;
    for (const TokenizedExample & example : batch.examples) {
        const size_t n_teacher_tokens =
            batch.has_teacher ? example.prompt.size() + example.trace.size() + example.target.size() : 0;
        costs.push_back(example.prompt.size() + example.target.size() + n_teacher_tokens);
    }
    Minibatch shard;
    shard.n_steps                                = batch.n_steps;
    shard.target_normalizer                      = std::max(1, batch.n_supervised_targets());
    shard.n_step_target_rows                     = batch.n_step_target_rows;
    shard.step_target_normalizer                 = std::max(1, batch.n_supervised_step_targets());
    shard.step_loss_weight                       = batch.step_loss_weight;
    shard.has_teacher                            = batch.has_teacher;
    shard.distill_weight                         = batch.distill_weight;
    shard.teacher_normalizer                     = std::max(1, batch.n_teacher_tokens());
    const std::vector<std::vector<size_t>> parts = balance_shards(costs, size_t(ranks_.size()));
    for (size_t i : parts[size_t(ranks_.rank())]) {
        shard.examples.push_back(batch.examples[i]);
        shard.global_indices.push_back(uint32_t(i));
    }
    shard.fraction = double(shard.n_examples()) / double(batch.n_examples());
    return shard;
}

// Remaining time: an update costs in proportion to its sequential layer applications.
double Trainer::ms_left(int64_t update, double ms) const {
    const auto cost = [&](const Stage & stage) {
        return double(model_->objective().n_layer_applications(model_->backbone(), stage.n_steps));
    };
    const double here   = cost(curriculum_.at(state_.progress));
    double       left   = 0;
    int64_t      n_left = settings_.n_updates - update;
    for (size_t i = size_t(state_.progress.stage); i < curriculum_.stages().size(); i++) {
        const Stage & stage = curriculum_.stages()[i];
        const int64_t plan  = std::max<int64_t>(0, stage.last - std::max(update, stage.first - 1));
        const int64_t n     = stage.is_final ? n_left : std::min(n_left, plan);
        left += double(n) * ms * cost(stage) / here;
        n_left -= n;
    }
    return left;
}

// True when a rank was asked to stop.
bool Trainer::run_update(int64_t update, const TrainEvents & events) {
    state_.progress           = curriculum_.next(state_.progress, state_.update);
    const Stage     stage     = curriculum_.draw(state_.progress, update, settings_.model.seed);
    Optimizer &     optimizer = model_->optimizer();
    const Stopwatch watch;
    const size_t    sent_before = ranks_.bytes_sent();
    if (model_->training().resets_optimizer && update == state_.progress.start_update + 1) {
        optimizer.reset_moments();
    }
    std::vector<DepthRecord>  depths  = state_.depths;
    const std::vector<size_t> indices = sampler_ ? sampler_->batch(update, depths) : batch_sampler_->batch(update);
    Minibatch                 batch   = minibatch(indices, stage, step_loss_weight(settings_, update));
    if (settings_.teacher_forcing > 0) {
        force_memory(batch, free_share(settings_.teacher_forcing, update, settings_.n_updates),
                     Rng(settings_.model.seed, stream_id("forcing", uint64_t(update))));
    }
    const Minibatch shard          = pad_for_device(local_shard(batch), model_->backbone(), backend_);
    model_->dropout().step         = uint64_t(update);
    model_->dropout().examples     = shard.global_indices;
    model_->dropout().left_padding = shard.left_padding();
    const double factor = lr_factor(update, settings_.n_updates, warmup_updates(settings_.n_updates, settings_.warmup));
    std::vector<double> lrs;
    for (const TrainableGroup & group : model_->groups()) {
        lrs.push_back(factor * (group.lr_group == LrGroup::backbone ? settings_.backbone_lr : settings_.module_lr));
    }
    // Each update starts from the same scale, so that a resumed run takes the same ones.
    float        scale = model_->loss_scale();
    BatchLoss    loss;
    double       wait_ms = 0, allreduce_ms = 0;
    UpdateResult report{};
    RightTable   right;
    while (true) {
        Stopwatch                 waiting;
        const size_t              n_sums = 4 + RightTable::n_values(depths.size(), batch);
        const std::vector<double> sums   = all_reduce_results(ranks_, n_sums, [&](std::vector<double> & mine) {
            const BatchLoss               own = graphs_->run(shard, scale);
            RightTable                    table(depths.size(), shard);
            const std::vector<RightCount> answers = right_answers(shard, own);
            for (size_t i = 0; sampler_ && i < shard.global_indices.size(); i++) {
                table.add_answer(sampler_->record_of(train_->example(indices[shard.global_indices[i]]).steps.size()),
                                   answers[i]);
            }
            table.add_steps(right_steps(shard, own));
            mine = { own.mean, own.steps, own.teacher, own.distance };
            table.append_to(mine);
            waiting = Stopwatch();
        });
        right                            = RightTable(depths.size(), batch, sums, 4);
        loss.mean                        = sums[0];
        loss.steps                       = sums[1];
        loss.teacher                     = sums[2];
        loss.distance                    = sums[3];
        wait_ms += waiting.elapsed_ms();
        report = UpdateResult{ NAN, false };
        if (std::isfinite(loss.total(batch))) {
            const Stopwatch exchanging;
            all_reduce_gradients(ranks_, optimizer);
            allreduce_ms += exchanging.elapsed_ms();
            report = optimizer.step(lrs, settings_.clip, scale);
        }
        if (report.applied || !std::isfinite(loss.total(batch)) || scale <= 1.0f) {
            break;
        }
        scale /= kScaleRetreat; // the gradients overflowed
    }
    if (!report.applied) {
        save_last();
        on_all_ranks(ranks_, [&]() -> void {
            throw Error(ErrorKind::format,
                        "update " + std::to_string(update) + ": the " +
                            (std::isfinite(loss.total(batch)) ? "gradient" : "loss") +
                            " is not finite; the state after update " + std::to_string(update - 1) + " is kept",
                        "use smaller --lr");
        });
    }
    const double ms = watch.elapsed_ms();
    mean_ms_        = mean_ms_ > 0 ? (1 - kMsSmoothing) * mean_ms_ + kMsSmoothing * ms : ms;
    state_.update   = update;
    // Learned is what is said at every step and at the end.
    state_.progress.add(std::max(loss.mean, batch.n_step_target_rows > 0 ? loss.steps : 0));
    state_.seconds += ms / 1000.0;
    for (size_t i = 0; i < depths.size(); i++) {
        depths[i].add(right.answers()[i].n_right, right.answers()[i].n_supervised_targets);
    }
    state_.depths = std::move(depths);

    UpdateReport shown{ update,
                        settings_.n_updates,
                        stage,
                        loss.mean,
                        batch.n_step_target_rows > 0 ? loss.steps : -1,
                        factor * settings_.backbone_lr,
                        factor * settings_.module_lr,
                        report.grad_norm,
                        1000.0 * batch.n_targets() / ms,
                        ms,
                        peak_memory(),
                        ms_left(update, mean_ms_),
                        batch_sampler_->epochs(update),
                        right.shares_of_steps() };
    OrderedJson  line{ { "update", update },
                      { "K", stage.n_steps },
                      { "u",
                        stage.n_skip_steps == kAnswerOnly ? OrderedJson("answer") : OrderedJson(stage.n_skip_steps) },
                      { "loss", loss.mean },
                      { "backbone_lr", shown.backbone_lr },
                      { "module_lr", shown.module_lr },
                      { "grad_norm", report.grad_norm },
                      { "tokens", model_->objective().input_tokens(batch).size() },
                      { "target_tokens", batch.n_targets() },
                      { "tokens_per_second", shown.tokens_per_second },
                      { "ms", ms },
                      { "peak_memory", shown.peak_memory },
                      { "epochs", shown.epochs } };
    if (batch.n_step_target_rows > 0) {
        line["step_loss"]        = loss.steps;
        line["step_loss_weight"] = batch.step_loss_weight;
        line["steps_right"]      = shares_json(shown.steps_right);
    }
    if (sampler_) {
        for (size_t i = 0; i < state_.depths.size(); i++) {
            shown.depths.emplace_back(sampler_->depths()[i], state_.depths[i].accuracy);
        }
        line["depths"] = shown.depths;
    }
    if (batch.has_teacher) {
        line["teacher_loss"] = loss.teacher;
        line["distill_loss"] = loss.distance;
    }
    if (ranks_.size() > 1) {
        line["ranks"]        = ranks_.size();
        line["wait_ms"]      = wait_ms;
        line["allreduce_ms"] = allreduce_ms;
        line["bytes_sent"]   = ranks_.bytes_sent() - sent_before;
    }
    const std::vector<std::string> stop_requests = all_gather_results(ranks_, [&] {
        if (ranks_.is_root()) {
            folder_.append_metrics(line);
            events.updated(shown);
        }
        return std::string(events.stop() ? "stop" : "");
    });
    return std::count(stop_requests.begin(), stop_requests.end(), "stop") > 0;
}

} // namespace penelope
