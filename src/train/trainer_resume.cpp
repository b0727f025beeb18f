// Checkpoints of a run: saving, resuming, and extending a run to more updates.
#include "base/error.h"
#include "base/format.h"
#include "base/log.h"
#include "train/trainer.h"

#include <algorithm>

namespace penelope {

// An extended run keeps its stages and prolongs the last one.
void Trainer::build_curriculum() {
    const TrainSettings &  s                  = settings_;
    const MethodTraining & training           = method_training(s.model.method);
    const KSchedule        draw               = parse_k_schedule(s.k_schedule);
    const int64_t          curriculum_updates = s.curriculum_updates > 0 ? s.curriculum_updates : s.n_updates;
    const bool             supervise_all      = draw == KSchedule::uniform_all;
    const bool             is_deep            = draw == KSchedule::deep;
    Curriculum             curriculum =
        !training.has_curriculum && training.format() ? Curriculum::with_constant_k(curriculum_updates, s.latent_steps)
                    : draw == KSchedule::staged ? Curriculum(curriculum_updates, s.n_blocks, s.latent_steps)
                    : s.advance_loss > 0
                        ? Curriculum::with_growing_k(curriculum_updates, s.latent_steps, supervise_all, s.advance_loss)
                        : Curriculum::with_random_k(curriculum_updates, s.latent_steps, supervise_all, is_deep);
    if (draw == KSchedule::staged) {
        curriculum.set_advance_loss(s.advance_loss);
    }
    curriculum.extend_to(s.n_updates);
    curriculum_ = std::move(curriculum);
}

// Does nothing if the last checkpoint already has this state; saving again would replace previous.gguf by a copy.
void Trainer::save_last() {
    if (saved_update_ == state_.update && saved_validated_ == state_.validated) {
        return;
    }
    on_all_ranks(ranks_, [&] {
        if (ranks_.is_root()) {
            folder_.sync_metrics();
            save_checkpoint(folder_.last(), state_, model_->optimizer(), CheckpointContents::weights_and_moments,
                            [&] { folder_.save_previous(); });
            folder_.save_numbered(state_.update, settings_.n_keep_checkpoints);
        }
    });
    saved_update_    = state_.update;
    saved_validated_ = state_.validated;
}

void Trainer::save_best() {
    on_all_ranks(ranks_, [&] {
        if (ranks_.is_root()) {
            save_checkpoint(folder_.best(), state_, model_->optimizer(), CheckpointContents::weights);
        }
    });
}

// Loads weights and score of the best validation. Returns false if best.gguf is damaged or missing; the current weights
// then stay. After going back to an older checkpoint, best.gguf may be newer than the run.
bool Trainer::restore_best() {
    char has_best = 1; // broadcast to all ranks
    on_all_ranks(ranks_, [&] {
        if (!ranks_.is_root()) {
            return;
        }
        try {
            state_.best = load_checkpoint(folder_.best(), model_->optimizer(), CheckpointContents::weights).best;
        } catch (const Error & error) {
            if (error.kind != ErrorKind::format && error.kind != ErrorKind::not_found) {
                throw;
            }
            log_warning(error.message() + "; the model gets the weights of the last update");
            has_best = 0;
        }
    });
    ranks_.broadcast(&has_best, sizeof(has_best));
    broadcast_state(ranks_, state_);
    broadcast_parameters(ranks_, model_->optimizer(), CheckpointContents::weights);
    return has_best != 0;
}

// Loads the newest intact checkpoint. Throws Error(usage) if its settings differ, because the shapes may differ too.
RunState Trainer::load_last(const std::string & settings) {
    const std::vector<std::string> files = folder_.checkpoints();
    std::vector<std::string>       damaged; // messages of damaged checkpoints
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
            RunState state =
                load_checkpoint(file, model_->optimizer(), CheckpointContents::weights_and_moments, accept);
            if (!damaged.empty()) {
                log_warning(join(damaged, "; ") + "; resuming from the previous checkpoint, " + file + ", update " +
                            std::to_string(state.update));
                folder_.restore_last(file);
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

// Ranks may run on different machines with their own copies of the files.
void Trainer::check_same_settings() {
    const std::vector<std::string> all =
        all_gather_results(ranks_, [&] { return dump_json(settings_json(settings_, sums_, Recorded::all)); });
    on_all_ranks(ranks_, [&] {
        const std::vector<SettingChange> changes = changed_settings(all[size_t(ranks_.rank())], all.front());
        if (!changes.empty()) {
            refuse_changes(changes, settings_, "settings differ from those of rank 0",
                           "all ranks need the same flags, data and models");
        }
    });
}

void Trainer::resume() {
    const std::string settings = state_.settings;
    on_all_ranks(ranks_, [&] {
        if (ranks_.is_root()) {
            resume_from(settings);
        }
    });
    broadcast_state(ranks_, state_);
    broadcast_parameters(ranks_, model_->optimizer(), CheckpointContents::weights_and_moments);
    saved_update_    = state_.update;
    saved_validated_ = state_.validated;
    on_all_ranks(ranks_, [&] {
        settings_.curriculum_updates =
            json_find<int64_t>(parse_json(state_.settings, "settings"), kCurriculumUpdatesKey, "settings").value_or(0);
        build_curriculum();
        if (state_.progress.stage >= int64_t(curriculum_.stages().size())) {
            throw Error(ErrorKind::format, folder_.last() + ": checkpoint is in stage " +
                                               std::to_string(state_.progress.stage + 1) + ", the curriculum has " +
                                               std::to_string(curriculum_.stages().size()));
        }
        const size_t n_depths = sampler_ ? sampler_->depths().size() : 0;
        if (state_.depths.size() != n_depths) {
            throw Error(ErrorKind::format, folder_.last() + ": checkpoint has " + std::to_string(state_.depths.size()) +
                                               " depths (numbers of gold steps), the data has " +
                                               std::to_string(n_depths));
        }
    });
}

void Trainer::resume_from(const std::string & settings) {
    state_                                   = load_last(settings);
    const std::string                where   = folder_.last();
    const Json                       then    = parse_json(state_.settings, where);
    const std::vector<SettingChange> changes = changed_settings(settings, state_.settings);
    std::vector<std::string>         incomparable;
    for (const SettingChange & change : changes) {
        if (change.key == kRanksKey) {
            log_warning("resuming with " + std::to_string(ranks_.size()) + " ranks instead of " +
                        dump_json(change.then) + ": results are not bit-identical");
        } else if (changes_scores(change)) {
            incomparable.push_back(change_text(change, settings_));
        }
    }
    if (!incomparable.empty()) {
        log_warning(join(incomparable, ", ") + ": validation scores up to update " + std::to_string(state_.update) +
                    " are not comparable with later ones");
    }
    const int64_t n_before = json_get<int64_t>(then, kUpdatesKey, where);
    if (settings_.n_updates < n_before) {
        throw Error(ErrorKind::usage,
                    "--updates " + std::to_string(settings_.n_updates) + " is less than the " +
                        std::to_string(n_before) + " of the run; --resume cannot shorten it",
                    "start a new run with another --out");
    }
    if (state_.update > settings_.n_updates) {
        throw Error(ErrorKind::format, where + ": checkpoint is at update " + std::to_string(state_.update) +
                                           ", the run has " + std::to_string(settings_.n_updates));
    }
    OrderedJson   now                = parse_ordered_json(settings, where);
    const int64_t curriculum_updates = json_find<int64_t>(then, kCurriculumUpdatesKey, where).value_or(n_before);
    if (curriculum_updates != settings_.n_updates) {
        now[kCurriculumUpdatesKey] = curriculum_updates;
    }
    state_.settings = dump_json(now);
    folder_.cut_metrics(state_.update, state_.validated);
    // So that the next --resume does not need the flags of this one.
    folder_.update_config(settings_toml(settings_));
    if (settings_.n_updates > n_before) {
        log_info("extending the run from " + std::to_string(n_before) + " to " + std::to_string(settings_.n_updates) +
                 " updates");
    }
}

} // namespace penelope
