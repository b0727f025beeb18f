// Whether a run may go on under settings that differ from those it was started with, and how the difference is told.
#pragma once

#include "train/settings.h"

#include <string>
#include <vector>

namespace penelope {

constexpr const char * kRanksKey  = "ranks";   // of the settings: how many ranks there are
constexpr const char * kLengthKey = "updates"; // and how many updates
constexpr const char * kStagesKey =
    "stages_for"; // updates the stages were laid out for, of a run that was lengthened since

// The settings, JSON objects as settings_json() gives them, that only one of the two has, or both and not the same.
std::vector<std::string> different_settings(const std::string & now, const std::string & then);

// Throws Error(usage) naming the flags and files behind these keys. what: "--resume: the run was started"
[[noreturn]] void refuse_settings(const std::vector<std::string> & keys, const TrainSettings & settings,
                                  const std::string & what, const std::string & hint);

} // namespace penelope
