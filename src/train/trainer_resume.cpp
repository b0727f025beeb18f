// What a run leaves on the disk to go on from, and how it goes on: also with more updates than it was made for.
#include "base/error.h"
#include "base/format.h"
#include "base/log.h"
#include "train/share_state.h"
#include "train/trainer.h"

#include <algorithm>

namespace penelope {

// Those of a run that was made longer stay where they were, and the last one goes on.
void Trainer::lay_out_stages() {
    const TrainSettings &  s        = settings_;
    const MethodTraining & training = method_training(s.model.method);
    const DepthDraw        draw     = parse_depth_draw(s.depth_draw);
    const int64_t          n_staged = s.n_staged > 0 ? s.n_staged : s.n_updates;
    const bool             asks_all = draw == DepthDraw::free;
    Curriculum curriculum = !training.has_stages && training.format() ? Curriculum::constant(n_staged, s.depth)
                            : draw == DepthDraw::stages               ? Curriculum(n_staged, s.n_blocks, s.depth)
                            : s.learned > 0 ? Curriculum::growing(n_staged, s.depth, asks_all, s.learned)
                                            : Curriculum::drawn(n_staged, s.depth, asks_all);
    if (draw == DepthDraw::stages) {
        curriculum.last_until(s.learned);
    }
    curriculum.lengthen(s.n_updates);
    curriculum_ = std::move(curriculum);
}

// Nothing when that is what the last checkpoint holds: the one before it would be lost for a copy.
void Trainer::save_last() {
    if (saved_update_ == state_.update && saved_scored_ == state_.scored) {
        return;
    }
    together(ranks_, [&] {
        if (ranks_.is_first()) {
            folder_.sync_metrics();
            save_checkpoint(folder_.last(), state_, model_->optimizer(), CheckpointParts::weights_and_moments,
                            [&] { folder_.keep_previous(); });
            folder_.keep_last(state_.update, settings_.n_kept);
        }
    });
    saved_update_ = state_.update;
    saved_scored_ = state_.scored;
}

void Trainer::save_best() {
    together(ranks_, [&] {
        if (ranks_.is_first()) {
            save_checkpoint(folder_.best(), state_, model_->optimizer(), CheckpointParts::weights);
        }
    });
}

// Takes weights and score of the best validation. False: that file is damaged or gone, and the last weights stay. Of a
// run that was taken back to an older checkpoint the best state may be from the time after it.
bool Trainer::take_best() {
    char has_best = 1; // for all ranks
    together(ranks_, [&] {
        if (!ranks_.is_first()) {
            return;
        }
        try {
            state_.best = load_checkpoint(folder_.best(), model_->optimizer(), CheckpointParts::weights).best;
        } catch (const Error & error) {
            if (error.kind != ErrorKind::format && error.kind != ErrorKind::not_found) {
                throw;
            }
            log_warning(error.message() + "; the model gets the weights of the last update");
            has_best = 0;
        }
    });
    ranks_.share(&has_best, sizeof(has_best));
    share_state(ranks_, state_);
    share_parameters(ranks_, model_->optimizer(), CheckpointParts::weights);
    return has_best != 0;
}

// The newest checkpoint that is whole. Throws Error(usage) when the run was started with other settings: then its
// weights may have other shapes too.
RunState Trainer::load_last(const std::string & settings) {
    const std::vector<std::string> files = folder_.checkpoints();
    std::vector<std::string>       damaged; // and what is wrong with each
    const auto                     accept = [&](const RunState & state) {
        std::vector<SettingChange> changes = changed_settings(settings, state.settings);
        changes.erase(std::remove_if(changes.begin(), changes.end(), may_change), changes.end());
        if (!changes.empty()) {
            refuse_changes(changes, settings_, "cannot resume",
                                               "give the same flags and files, or start a new run with another --out");
        }
    };
    while (true) {
        const std::string & file = files[damaged.size()];
        try {
            RunState state = load_checkpoint(file, model_->optimizer(), CheckpointParts::weights_and_moments, accept);
            if (!damaged.empty()) {
                log_warning(join(damaged, "; ") + "; going on from the checkpoint before it, " + file +
                            ", after update " + std::to_string(state.update));
                folder_.return_to(file);
            }
            return state;
        } catch (const Error & error) {
            if (damaged.size() + 1 == files.size() ||
                (error.kind != ErrorKind::format && error.kind != ErrorKind::not_found)) {
                throw;
            }
            damaged.push_back(error.message());
        }
    }
}

// Ranks may run on machines with files of their own.
void Trainer::check_same_settings() {
    const std::vector<std::string> all =
        gather_together(ranks_, [&] { return dump_json(settings_json(settings_, sums_, Recorded::all)); });
    together(ranks_, [&] {
        const std::vector<SettingChange> changes = changed_settings(all[size_t(ranks_.rank())], all.front());
        if (!changes.empty()) {
            refuse_changes(changes, settings_, "other settings than those of rank 0",
                           "all ranks need the same flags, data and models");
        }
    });
}

void Trainer::resume() {
    const std::string settings = state_.settings;
    together(ranks_, [&] {
        if (ranks_.is_first()) {
            continue_from(settings);
        }
    });
    share_state(ranks_, state_);
    share_parameters(ranks_, model_->optimizer(), CheckpointParts::weights_and_moments);
    saved_update_ = state_.update;
    saved_scored_ = state_.scored;
    together(ranks_, [&] {
        settings_.n_staged =
            json_find<int64_t>(parse_json(state_.settings, "settings"), kStagesKey, "settings").value_or(0);
        lay_out_stages();
        if (state_.place.stage >= int64_t(curriculum_.stages().size())) {
            throw Error(ErrorKind::format, folder_.last() + ": is from stage " +
                                               std::to_string(state_.place.stage + 1) + " of " +
                                               std::to_string(curriculum_.stages().size()));
        }
        const size_t n_depths = sampler_ ? sampler_->depths().size() : 0;
        if (state_.depths.size() != n_depths) {
            throw Error(ErrorKind::format, folder_.last() + ": knows examples of " +
                                               std::to_string(state_.depths.size()) +
                                               " different numbers of steps, the data has " + std::to_string(n_depths));
        }
    });
}

void Trainer::continue_from(const std::string & settings) {
    state_                                   = load_last(settings);
    const std::string                where   = folder_.last();
    const Json                       then    = parse_json(state_.settings, where);
    const std::vector<SettingChange> changes = changed_settings(settings, state_.settings);
    std::vector<std::string>         incomparable;
    for (const SettingChange & change : changes) {
        if (change.key == kRanksKey) {
            log_warning("the run goes on with " + std::to_string(ranks_.size()) +
                        " ranks; before it had another number, and sums are now rounded otherwise");
        } else if (changes_scores(change)) {
            incomparable.push_back(change_text(change, settings_));
        }
    }
    if (!incomparable.empty()) {
        log_warning(join(incomparable, ", ") + ": validation scores up to update " + std::to_string(state_.update) +
                    " are not comparable with later ones");
    }
    const int64_t n_before = json_get<int64_t>(then, kLengthKey, where);
    if (settings_.n_updates < n_before) {
        throw Error(ErrorKind::usage,
                    "--updates " + std::to_string(settings_.n_updates) + ": the run was made for " +
                        std::to_string(n_before) + ", and --resume can only make it longer",
                    "start a new run with another --out");
    }
    if (state_.update > settings_.n_updates) {
        throw Error(ErrorKind::format, where + ": is from update " + std::to_string(state_.update) + " of a run of " +
                                           std::to_string(settings_.n_updates));
    }
    OrderedJson   now      = parse_ordered_json(settings, where);
    const int64_t n_staged = json_find<int64_t>(then, kStagesKey, where).value_or(n_before);
    if (n_staged != settings_.n_updates) {
        now[kStagesKey] = n_staged;
    }
    state_.settings = dump_json(now);
    folder_.cut_metrics(state_.update, state_.scored);
    // For the next --resume, which may come without the flags of this one.
    folder_.update_config(settings_toml(settings_));
    if (settings_.n_updates > n_before) {
        log_info("the run was made for " + std::to_string(n_before) + " updates and goes on to " +
                 std::to_string(settings_.n_updates));
    }
}

} // namespace penelope
