// Parses and compares answers, in the same way for training and evaluation: finds the answer in generated text and
// decides whether it equals the gold answer.
#pragma once

#include "task/task.h"

#include <string>
#include <vector>

namespace penelope {

// How two answers of the generic task are compared, after trimming and Unicode normalization.
enum class Match {
    exact,  // the whole text
    number, // the first number: "1,200.50 km" is 1200.5
    choice, // the longest known answer the text starts with, ignoring case: "B) Paris" is B
};

Match parse_match(const std::string & name); // "" is exact; throws Error(usage) for unknown names

class AnswerReader {
  public:
    // The answers of examples are the choices of Match::choice. The task must outlive the reader.
    AnswerReader(const Task & task, std::string answer_prefix, Match match, const std::vector<Example> & examples);

    const Task & task() const { return *task_; }

    std::string read(const std::string & text) const; // what follows the prefix, in the form of gold(); empty: none
    std::string gold(const Example & example) const;  // empty: not a valid answer
    bool        is_correct(const std::string & text, const Example & example) const;

  private:
    std::string canonicalize(const std::string & answer) const;

    const Task *             task_;
    std::string              prefix_; // without spaces at its end
    Match                    match_;
    std::vector<std::string> choices_; // longest first
};

// The text after the prefix at the start of the last such line, else after its last occurrence, else the whole text.
std::string after_prefix(const std::string & text, const std::string & prefix);

// The first number of a text without thousands separators and redundant zeros; empty: none.
std::string canonical_number(const std::string & text);

} // namespace penelope
