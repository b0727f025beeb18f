// Which task a set of examples is treated as, and why: what is said decides, else the questions' own marks.
#pragma once

#include "task/task.h"

#include <string>
#include <vector>

namespace penelope {

struct TaskChoice {
    const Task * task;
    std::string  why; // for people, without a full stop
};

// name: a task's name, empty when none was given. match: how answers of the generic task are compared, empty when not
// said; only that task has a choice there, so a given one means it. Throws Error(usage) for an unknown name, and for a
// match given together with another task.
TaskChoice choose_task(const std::string & name, const std::string & match, const std::vector<Example> & examples);

// "task prontoqa: every question has ...; --task generic treats them as any other text"
std::string task_line(const TaskChoice & choice);

} // namespace penelope
