// Registry of the built-in tasks: how each generates data, parses an answer from generated text, and which accuracy
// guessing reaches.
#pragma once

#include "task/example.h"
#include "text/prompt_template.h"

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace penelope {

struct DepthRange {
    int first = 0;
    int last  = 0;
};

// Depth: nested operators (listops), hops of the shortest path (prosqa) or of the proof (prontoqa), edges from start to
// end (thread).
struct DatasetOptions {
    uint64_t                 seed    = 0;
    size_t                   n_train = 0;
    size_t                   n_valid = 0;
    size_t                   n_test  = 0;
    DepthRange               depth; // of train and valid
    DepthRange               test_depth;
    std::vector<std::string> operators;      // listops: operators to use; empty: all
    double                   branch_p  = 0;  // listops: probability that a digit argument becomes an operator
    int                      max_steps = -1; // listops: truncate the steps after this many, -1: no limit
    int                      n_chains  = 3;  // thread
    int         min_chains = 0; // thread: train questions have min_chains .. n_chains; 0: n_chains, as valid and test
    std::string surface    = "letters";       // thread: letters or words
    std::unordered_set<std::string> excluded; // question hashes that must not be generated (see task/question.h)
};

struct Dataset {
    std::vector<Example> train;
    std::vector<Example> valid;
    std::vector<Example> test;
};

// Accuracy of a baseline without reasoning.
struct ChanceLevel {
    std::string how;
    double      share; // of examples answered correctly
};

// Named properties of an example that the audit counts, e.g. ("depth", "3").
using Facets = std::vector<std::pair<std::string, std::string>>;

// Training defaults of the task, from the paper's comparison.
struct Protocol {
    double  cot_epochs     = 3;
    int64_t latent_updates = 1500;
    int     batch_size     = 4;
    int     n_thoughts     = 6; // default K of Coconut
};

struct Task {
    const char *              name = nullptr;
    DatasetOptions            defaults;     // the sizes of the paper
    std::vector<const char *> task_options; // flags of `penelope data` that not every task takes
    Protocol                  protocol;

    // Deterministic for given options; all question hashes are distinct. Throws Error(usage) for options out of range
    // or more questions than exist. The test set does not depend on the sizes of train and valid.
    Dataset (*generate)(const DatasetOptions & options) = nullptr;

    // Parses the answer from generated text (after the answer prefix) into the form of the gold answers; empty: not
    // parsed.
    std::string (*extract)(const std::string & text) = nullptr;

    // Baselines on these examples, at least one. The first is the one a model has to beat.
    std::vector<ChanceLevel> (*chance)(const std::vector<Example> & examples) = nullptr;

    // The answer of the first baseline if it depends only on the question; else null.
    std::string (*baseline_answer)(const std::string & question) = nullptr;

    // Canonical form of a question for hashing; questions with equal forms are duplicates.
    std::string (*normalize)(const std::string & question) = nullptr;

    // Whether the question belongs to this task.
    bool (*recognizes)(const std::string & question) = nullptr;

    Facets (*facets)(const Example & example) = nullptr;

    // The result of each step, then the answer. Empty without steps.
    std::vector<std::string> (*results)(const Example & example) = nullptr;

    // What the first step starts from, e.g. the start node of a chain.
    std::string (*start)(const Example & example) = nullptr;

    const char * answer_prefix = default_answer_prefix; // text before the answer

    const char * marks = ""; // how its questions are recognized, for messages: "every question is ..."
};

const std::vector<Task> & tasks();

// Targets of --step-loss: `step_results` of the file and the answer, else what the task parses from the steps.
std::vector<std::string> step_results(const Task & task, const Example & example);

// Start of the chain of results, from the file or else parsed by the task. Needs steps.
std::string chain_start(const Task & task, const Example & example);

// Also accepts "generic". Throws Error(usage) listing the known tasks.
const Task & find_task(const std::string & name);

// The task of your own data: answers are compared as text (task/answer_reader.h). It has no generator: generate is
// null.
const Task & generic_task();

// The built-in task of these questions; null: none.
const Task * recognize_questions(const std::vector<Example> & examples);

// The same, if the task can also parse their answers.
const Task * recognize_task(const std::vector<Example> & examples);

} // namespace penelope
