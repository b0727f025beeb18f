// The data of `penelope learn`: reads a file or a directory, checks it, and divides it into train, valid and test so
// that no test question is trained on.
#pragma once

#include "learn/recipe.h"
#include "task/choose_task.h"
#include "text/tokenizer.h"

#include <string>
#include <vector>

namespace penelope {

struct LearnData {
    Dataset     parts;
    TaskChoice  task{};
    bool        is_text       = false; // plain text: next tokens
    bool        by_perplexity = false; // long free text, which exact match says nothing about
    size_t      n_leaks       = 0;     // training examples dropped because valid or test asks the same question
    std::string sum;                   // SHA-256 of the files
};

// path: a file that read_examples takes, plain text (.txt, .md), or a directory with train.jsonl (or .json, .csv) and
// perhaps valid and test, or with files of plain text. What is missing is taken from the training examples: a tenth
// each, at most kMostValid and kMostTest. Throws Error naming file and line for data that is not valid, and
// Error(usage) for too few questions.
constexpr size_t kMostValid = 200, kMostTest = 1000;
LearnData        read_learn_data(const std::string & path, uint64_t seed);

// Writes train.jsonl, valid.jsonl and test.jsonl.
void write_learn_data(const LearnData & data, const std::string & dir);

// Why there is nothing to move into latent steps; empty: there are steps.
std::string no_steps_reason(const LearnData & data);

// Drops examples that do not fit a context of so many tokens with all their steps and the rows of a latent method;
// returns how many. Throws Error(usage) if none is left.
size_t drop_longer(LearnData & data, const Tokenizer & tokenizer, size_t n_context);

// Facts the recipe needs. Lengths are those of all examples, the rest of the training examples.
LearnDataFacts data_facts(const LearnData & data, const Tokenizer & tokenizer);

// Texts a new vocabulary is learned from, and their mean size in bytes with the target.
double mean_bytes(const std::vector<Example> & examples);

} // namespace penelope
