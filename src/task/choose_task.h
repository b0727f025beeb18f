// Chooses the task of a set of examples: --task if given, else by recognizing the questions.
#pragma once

#include "task/task.h"

#include <string>
#include <vector>

namespace penelope {

struct TaskChoice {
    const Task * task;
    std::string  why; // reason, for messages
};

// name: --task, may be empty. match: --match, may be empty; it implies the generic task. Throws Error(usage) for an
// unknown name, and for a match together with another task.
TaskChoice choose_task(const std::string & name, const std::string & match, const std::vector<Example> & examples);

// "task prontoqa: every question has ...; --task generic treats them as any other text"
std::string task_line(const TaskChoice & choice);

} // namespace penelope
