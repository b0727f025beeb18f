// One stage of `penelope learn` through the trainer: measured by a few updates, or run to its end.
#pragma once

#include "graph/device.h"
#include "learn/learn_plan.h"
#include "task/task.h"
#include "train/trainer.h"

#include <functional>
#include <string>

namespace penelope {

// Trains kProbeUpdates updates of these settings on a sample of the data, in the folder `scratch`, which is removed.
// The sample has the longest example and the one with the most steps. Throws Error(cancelled) when stop() says so.
StageProbe probe_stage(TrainSettings settings, const Dataset & parts, const std::string & scratch,
                       const Backend & backend, const std::function<bool()> & stop);

// Trains to the end, from the last checkpoint in settings.out if there is one.
TrainResult run_stage(const TrainSettings & settings, const Backend & backend, const TrainEvents & events);

} // namespace penelope
