// One question of a task with its reasoning steps and answer, and the files that hold them.
// Input: JSON Lines, one JSON array or CSV, of the shapes in task/example_format.h; other keys are ignored. Output: examples in
// file order; JSON Lines text.
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
    std::vector<std::string> results; // what each step leads to, where the file says it; else empty
    ExampleKind              kind = ExampleKind::question;
    std::vector<ChatMessage> messages;            // of a chat, all before the answer; question is then their text
    bool                     is_numbered = false; // the file gave no id
};

enum class IdCheck { unique, none };

// Reads any format, told apart by the first character of the text. An example without an id gets STEM-INDEX (STEM-IDX
// where Coconut's idx is given), STEM being the file's name without its extension.
// Throws Error: not_found for a missing file; format, naming file and line (or item of an array), for an empty file,
// malformed text, missing or empty fields, wrong types, examples of several shapes and, with IdCheck::unique, an id that
// occurs twice.
std::vector<Example> read_examples(const std::filesystem::path & path, IdCheck ids = IdCheck::unique);

// The same for text in memory; name stands for the file in messages and in the ids it makes.
std::vector<Example> parse_examples(const std::string & text, const std::string & name, IdCheck ids = IdCheck::unique);

// One line of JSON an example, in the shape it was read from.
std::string examples_to_jsonl(const std::vector<Example> & examples);

} // namespace penelope
