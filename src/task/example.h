// One question of a task with its reasoning steps and answer, and the files that hold them.
// Input: JSON Lines {"id","question","steps","answer"} or Coconut's JSON arrays of {"question","steps","answer"[,"idx"]};
// other keys are ignored. Output: examples in file order; JSON Lines text.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace penelope {

struct Example {
    std::string              id;
    std::string              question;
    std::vector<std::string> steps; // may be empty
    std::string              answer;
};

enum class IdCheck { unique, none };

// Reads either format, told apart by the first character of the text. An example without an id gets STEM-INDEX (STEM-IDX
// where Coconut's idx is given), STEM being the file's name without its extension.
// Throws Error: not_found for a missing file; format, naming file and line (or item of an array), for an empty file,
// malformed JSON, missing or empty fields, wrong types and, with IdCheck::unique, an id that occurs twice.
std::vector<Example> read_examples(const std::filesystem::path & path, IdCheck ids = IdCheck::unique);

// The same for text in memory; name stands for the file in messages and in the ids it makes.
std::vector<Example> parse_examples(const std::string & text, const std::string & name, IdCheck ids = IdCheck::unique);

// One line of JSON an example, keys in the order id, question, steps, answer.
std::string examples_to_jsonl(const std::vector<Example> & examples);

} // namespace penelope
