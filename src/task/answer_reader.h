// From what a model wrote to right or wrong, the same way in training and evaluation. Input: a task, the answer prefix the
// model was trained with and how answers are compared; output: the answer in generated text, and whether it is the gold one.
#pragma once

#include "task/task.h"

#include <string>
#include <vector>

namespace penelope {

// How two answers of the generic task are compared, after trimming and Unicode normalization.
enum class Match {
    exact,  // all of the text
    number, // the first number in it: "1,200.50 km" is 1200.5
    choice, // capitals aside, the longest of the data's answers that the text begins with: "B) Paris" is B
};

Match parse_match(const std::string & name); // "" is exact. Throws Error(usage) naming the known ones.

class AnswerReader {
  public:
    // examples: whose answers are the choices. The task outlives the reader.
    AnswerReader(const Task & task, std::string answer_prefix, Match match, const std::vector<Example> & examples);

    const Task & task() const { return *task_; }

    std::string read(const std::string & text) const; // what follows the prefix, in the form of gold(); empty: none
    std::string gold(const Example & example) const;  // empty: no text can be read as this answer
    bool        is_correct(const std::string & text, const Example & example) const;

  private:
    std::string canonicalize(const std::string & answer) const;

    const Task *             task_;
    std::string              prefix_; // without spaces at its end
    Match                    match_;
    std::vector<std::string> choices_; // longest first
};

// The text after the last line that starts with the prefix, else after its last occurrence, else all of it.
std::string after_prefix(const std::string & text, const std::string & prefix);

// The first number of a text in one spelling: no thousands separators, no zeros that mean nothing. Empty: there is none.
std::string canonical_number(const std::string & text);

} // namespace penelope
