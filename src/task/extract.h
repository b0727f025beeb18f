// Parsing answers from generated text: one rule per task, the same for every method. Empty: no answer found.
#pragma once

#include <string>

namespace penelope {

// The part of the text that holds the answer: after the last '#', else after the last "The answer is:", else all of it;
// up to the first newline, trimmed, commas deleted.
std::string answer_part(const std::string & text);

// Deep ListOps: the first run of digits in the answer part, if it is a single digit.
std::string extract_digit(const std::string & text);

// PrOntoQA: the first word of the answer part that is True or False.
std::string extract_truth(const std::string & text);

// ProsQA: "Name is a concept." if the answer part is that sentence, with or without its period.
std::string extract_membership(const std::string & text);

} // namespace penelope
