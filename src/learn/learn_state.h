// learn.json: what a run was asked for, what was measured, and which parts are finished, so that it can go on.
#pragma once

#include "base/json.h"
#include "learn/learn_plan.h"

#include <map>
#include <string>

namespace penelope {

struct StageState {
    StageProbe  probe;
    bool        is_measured    = false;
    bool        has_low_memory = false; // --low-memory, because the machine has no more
    double      seconds        = 0;     // time the recipe was given; 0: not started
    bool        is_done        = false;
    OrderedJson result; // of the trainer, for the report
};

struct LearnState {
    OrderedJson                       options;         // by name, as text
    double                            seconds     = 0; // spent so far
    size_t                            n_questions = 0; // test questions that are scored; 0: not decided
    std::map<std::string, StageState> stages;          // by stage_name()
};

// Throws Error(format) for a damaged file.
LearnState read_learn_state(const std::string & path);
void       write_learn_state(const LearnState & state, const std::string & path);

// Throws Error(usage) naming the first option that differs from those the run was started with.
void check_same_options(const OrderedJson & before, const OrderedJson & now, const std::string & folder);

} // namespace penelope
