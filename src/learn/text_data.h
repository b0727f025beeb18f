// Plain text as data of `penelope learn`: cut into windows, each the completion of its first word.
#pragma once

#include <string>

namespace penelope {

struct LearnData;

// A file named .txt or .md, or a directory with such files and no train.jsonl.
bool is_plain_text(const std::string & path);

// Windows end at a paragraph, else a line, else a word. Valid and test are windows from the end of each file. Throws
// Error(format) for text that is empty, too short or not UTF-8.
LearnData read_text_data(const std::string & path);

} // namespace penelope
