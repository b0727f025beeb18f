// Chooses how answers of a model to a set of examples are parsed: by the names given, else as stored in the model file,
// else by recognizing the questions.
#pragma once

#include "task/answer_reader.h"
#include "task/choose_task.h"

namespace penelope {

struct PromptFormat;

struct ReaderChoice {
    TaskChoice   choice;
    AnswerReader reader;
};

// task, match: as for choose_task(). format: of the model, may be null. Throws as choose_task() and parse_match() do.
ReaderChoice choose_reader(const std::string & task, const std::string & match, const PromptFormat * format,
                           const std::vector<Example> & examples);

} // namespace penelope
