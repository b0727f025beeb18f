// The settings a checkpoint is kept with, and whether a run may go on under those of now.
#pragma once

#include "train/settings.h"

#include <string>
#include <vector>

namespace penelope {

constexpr const char * kRanksKey   = "ranks";   // of the settings: how many ranks there are
constexpr const char * kUpdatesKey = "updates"; // and how many updates
constexpr const char * kCurriculumUpdatesKey =
    "curriculum_updates"; // updates the stages were laid out for, of a run that was lengthened since

// The SHA-256 of the files of a run; empty where there is none.
struct FileSums {
    std::string base, init, train, valid;
};

enum class Recorded { with_model, all };

// Every setting that touches weights or scores and the checksums, as checkpoints and models record them. all: also what
// only says which files are written when, in which the ranks of a run must agree too.
OrderedJson settings_json(const TrainSettings & settings, const FileSums & sums, Recorded which);

// A key of settings_json() whose value differs; a side without it has null.
struct SettingChange {
    std::string key;
    OrderedJson then, now;
};

std::vector<SettingChange> changed_settings(const std::string & now, const std::string & then);

// Whether a run may go on when this changed, and whether its scores before and after are then of different things.
bool may_change(const SettingChange & change);
bool changes_scores(const SettingChange & change);

// "--clip was 1.0, now 0.5"; "data/train.jsonl has changed (SHA-256 differs)"
std::string change_text(const SettingChange & change, const TrainSettings & settings);

// Throws Error(usage) with the text of every change: "cannot resume: --clip was 1.0, now 0.5".
[[noreturn]] void refuse_changes(const std::vector<SettingChange> & changes, const TrainSettings & settings,
                                 const std::string & what, const std::string & hint);

} // namespace penelope
