#include "task/choose_task.h"

#include "base/error.h"

namespace penelope {

TaskChoice choose_task(const std::string & name, const std::string & match, const std::vector<Example> & examples) {
    const Task & generic = generic_task();
    if (!name.empty()) {
        const Task & task = find_task(name);
        if (!match.empty() && &task != &generic) {
            throw Error(ErrorKind::usage, "--match: only for the generic task, this is " + name,
                        "leave --match out, or add --task generic");
        }
        return { &task, "given by --task" };
    }
    if (!match.empty()) {
        return { &generic, "--match is of this task" };
    }
    if (const Task * task = recognize_task(examples)) {
        return { task, std::string(task->marks) + "; --task generic treats them as any other text" };
    }
    return { &generic, "the data is that of no built-in task" };
}

std::string task_line(const TaskChoice & choice) {
    return "task " + std::string(choice.task->name) + ": " + choice.why;
}

} // namespace penelope
