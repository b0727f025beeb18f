// An example: question, reasoning steps and answer; and reading and writing files of examples (JSON Lines, one JSON
// array or CSV, in the formats of task/example_format.h). Other keys are ignored.
#pragma once

#include "text/chat_template.h"

#include <filesystem>
#include <string>
#include <vector>

namespace penelope {

enum class ExampleKind { question, completion, chat };

struct Example {
    std::string              id;
    std::string              question;
    std::vector<std::string> steps; // may be empty
    std::string              answer;
    std::vector<std::string> results; // `step_results` of the file; else empty
    ExampleKind              kind = ExampleKind::question;
    std::vector<ChatMessage> messages;            // of a chat, without the answer; question is then their text
    bool                     is_numbered = false; // the file gave no id
};

enum class IdCheck { unique, none };

// Reads any format, recognized by the first character. An example without an id gets STEM-INDEX (STEM-IDX if Coconut's
// idx is given); STEM is the file name without extension. Throws Error: not_found for a missing file; format, naming
// file and line (or item of an array), for an empty file, malformed text, missing or empty fields, wrong types,
// examples of several formats and, with IdCheck::unique, an id that occurs twice.
std::vector<Example> read_examples(const std::filesystem::path & path, IdCheck ids = IdCheck::unique);

// The same for text in memory; name is the file name for messages and ids.
std::vector<Example> parse_examples(const std::string & text, const std::string & name, IdCheck ids = IdCheck::unique);

// JSON Lines, each example in the format it was read from.
std::string examples_to_jsonl(const std::vector<Example> & examples);

} // namespace penelope
