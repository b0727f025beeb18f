// What `penelope learn` shows while it works and at its end: lines and one line that is written over on a terminal,
// plain lines elsewhere, or JSON events.
#pragma once

#include "options.h"
#include "terminal.h"

#include "learn/learn.h"

namespace penelope {

// With --json one object per line on stdout: {"event": "note" | "plan" | "stage" | "update" | "validation" |
// "stage_done" | "scoring" | "result", ...}. The terminal must outlive the events.
LearnEvents learn_events(const Options & options, Terminal & terminal);

void show_learned(const LearnResult & result, const Options & options, Terminal & terminal);

} // namespace penelope
