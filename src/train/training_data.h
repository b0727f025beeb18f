// Examples of a task as tokens: prompts, and targets for any number of steps left to the latent computation. Prompts
// are tokenized once; of targets, which depend on the stage, only the lengths are kept.
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
    // Throws Error(unsupported) when the vocabulary has no end token, and Error(format) naming an example whose text the
    // vocabulary cannot spell.
    TrainingData(std::vector<Example> examples, const Tokenizer & tokenizer, TextLayout layout);

    size_t          size() const { return examples_.size(); }
    const Example & example(size_t i) const { return examples_[i]; }

    std::string                  prompt_text(size_t i) const;
    const std::vector<int32_t> & prompt(size_t i) const { return prompt_tokens_[i]; }
    // Steps n_skip_steps+1.. and the answer, then the end token.
    TokenizedExample tokenized(size_t i, int n_skip_steps) const;

    // The same with what a teacher writes before the answer: all steps but the last, which would give it away.
    TokenizedExample with_teacher(size_t i, int n_skip_steps) const;

    // Takes out examples with more than n_rows tokens in prompt and target (at n_skip_steps) together; gives how many.
    size_t drop_longer(size_t n_rows, int n_skip_steps);
    // The longest prompt and target together, and which example it is.
    struct Longest {
        size_t n_rows  = 0;
        size_t example = 0;
    };
    Longest longest(int n_skip_steps) const;

    // Prompts and targets tokenized so far.
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
    // By n_skip_steps: tokens of prompt and target of each example together, filled in when first asked for.
    mutable std::map<int, std::vector<size_t>> rows_;
    mutable size_t                             n_encoded_ = 0;
};

// "<dir>/<split>.jsonl", "<dir>/<split>.json" or "<dir>/<split>.csv", the first there is; else "".
std::string find_split(const std::string & dir, const std::string & split);

// Throws Error(not_found) naming what was looked for.
std::string get_split(const std::string & dir, const std::string & split);

} // namespace penelope
