#include "task/choose_reader.h"

#include "task/example_format.h"
#include "text/prompt_format.h"

namespace penelope {

ReaderChoice choose_reader(const std::string & task, const std::string & match, const PromptFormat * format,
                           const std::vector<Example> & examples) {
    std::string matched = match;
    TaskChoice  choice;
    if (task.empty() && match.empty() && format && format->task == generic_task().name) {
        choice  = { &generic_task(), "stored in the model file" };
        matched = format->match;
    } else {
        choice = choose_task(task, match, examples);
    }
    const std::string prefix = format ? format->answer_prefix : format_of(examples.front().kind).answer_prefix;
    return { choice, AnswerReader(*choice.task, prefix, parse_match(matched), examples) };
}

} // namespace penelope
