// Compares the settings recorded in a checkpoint with those of the resumed run and decides whether they may differ.
#pragma once

#include "train/settings.h"

#include <string>
#include <vector>

namespace penelope {

constexpr const char * kRanksKey   = "ranks";   // number of ranks
constexpr const char * kUpdatesKey = "updates"; // number of updates
constexpr const char * kCurriculumUpdatesKey =
    "curriculum_updates"; // updates the stages were laid out for, of a run that was lengthened since

// SHA-256 of the input files of a run; empty: no such file.
struct FileSums {
    std::string base, init, train, valid;
};

enum class Recorded { with_model, all };

// All settings that affect weights or scores, and the checksums, as recorded in checkpoints and models. Recorded::all:
// also settings of the output files, in which the ranks of a run must agree too.
OrderedJson settings_json(const TrainSettings & settings, const FileSums & sums, Recorded which);

// A key of settings_json() whose value differs; null: the key is missing on that side.
struct SettingChange {
    std::string key;
    OrderedJson then, now;
};

std::vector<SettingChange> changed_settings(const std::string & now, const std::string & then);

// Whether a run may resume with this change, and whether validation scores are then not comparable.
bool may_change(const SettingChange & change);
bool changes_scores(const SettingChange & change);

// "--clip was 1.0, now 0.5"; "data/train.jsonl has changed (SHA-256 differs)"
std::string change_text(const SettingChange & change, const TrainSettings & settings);

// Throws Error(usage) with the text of every change: "cannot resume: --clip was 1.0, now 0.5".
[[noreturn]] void refuse_changes(const std::vector<SettingChange> & changes, const TrainSettings & settings,
                                 const std::string & what, const std::string & hint);

} // namespace penelope
