// How a training run shows itself: a line per update and validation on stderr, its plan and its outcome on stdout.
#pragma once

#include "options.h"
#include "terminal.h"

#include "train/trainer.h"

#include <string>

namespace penelope {

// The lines of updates and scores; `log_every`-th updates stay, those between are written over on a terminal.
TrainEvents shown_events(Terminal & terminal, int64_t log_every);

void show_plan(const TrainPlan & plan, const Backend & backend, const Options & options, Terminal & terminal);
void show_gradients(double loss, const std::string & path, const Options & options, Terminal & terminal);
void show_outcome(const TrainResult & outcome, const Options & options, Terminal & terminal);

} // namespace penelope
