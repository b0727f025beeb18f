// Output of penelope train: log lines on stderr, plan and result on stdout.
#pragma once

#include "options.h"
#include "terminal.h"

#include "train/trainer.h"

#include <string>

namespace penelope {

// Prints log lines: every log_every-th update, and on a terminal one line that is updated in place.
TrainEvents shown_events(Terminal & terminal, int64_t log_every);

void show_plan(const TrainPlan & plan, const Backend & backend, const Options & options, Terminal & terminal);
void show_gradients(double loss, const std::string & path, const Options & options, Terminal & terminal);
void show_outcome(const TrainResult & outcome, const Options & options, Terminal & terminal);

} // namespace penelope
