// Training data: finds the files of a data directory and tokenizes prompts and targets, with any number of steps
// removed from the target. Prompts are tokenized once; targets depend on the stage, so only their lengths are cached.
#pragma once

#include "task/example_prompt.h"
#include "text/tokenizer.h"
#include "train/minibatch.h"

#include <map>
#include <string>
#include <vector>

namespace penelope {

struct TextLayout {
    std::string prompt_template;
    std::string answer_prefix;
};

class TrainingData {
  public:
    // Throws Error(unsupported) if the vocabulary has no EOS token, and Error(format) naming an example that the
    // tokenizer cannot encode.
    TrainingData(std::vector<Example> examples, const Tokenizer & tokenizer, TextLayout layout);

    size_t          size() const { return examples_.size(); }
    const Example & example(size_t i) const { return examples_[i]; }

    std::string                  prompt_text(size_t i) const;
    const std::vector<int32_t> & prompt(size_t i) const { return prompt_tokens_[i]; }
    // Target: steps n_skip_steps+1 .., the answer, then EOS.
    TokenizedExample tokenized(size_t i, int n_skip_steps) const;

    // Target: this chain of results instead of the steps, a newline, the answer, then EOS. An empty chain: the answer
    // alone.
    TokenizedExample with_chain(size_t i, const std::vector<int32_t> & chain) const;

    // Target as above with the trace of the teacher: all steps but the last, which contains the answer.
    TokenizedExample with_teacher(size_t i, int n_skip_steps) const;

    // Drops examples with more than n_rows tokens in prompt and target (at n_skip_steps); returns how many.
    size_t drop_longer(size_t n_rows, int n_skip_steps);
    // The example with the most tokens in prompt and target.
    struct Longest {
        size_t n_rows  = 0;
        size_t example = 0;
    };
    Longest longest(int n_skip_steps) const;

    // Number of texts tokenized so far.
    size_t n_encoded() const { return n_encoded_; }

  private:
    std::vector<int32_t>        encode(const std::string & text) const;
    const std::vector<size_t> & rows(int n_skip_steps) const;

    std::vector<Example>              examples_;
    Tokenizer                         tokenizer_;
    TextLayout                        layout_;
    ExamplePrompts                    prompts_;
    int32_t                           end_ = 0;
    std::vector<std::vector<int32_t>> prompt_tokens_;
    // Cache: for each n_skip_steps the number of tokens of prompt and target of each example.
    mutable std::map<int, std::vector<size_t>> rows_;
    mutable size_t                             n_encoded_ = 0;
};

// Path of the first that exists of <dir>/<split>.jsonl, .json and .csv; "": none.
std::string find_split(const std::string & dir, const std::string & split);

// The same; throws Error(not_found) if there is none.
std::string get_split(const std::string & dir, const std::string & split);

} // namespace penelope
