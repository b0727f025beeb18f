// The tasks the project knows: how each makes its data, reads an answer out of generated text and what guessing gives.
// Input: a task's name; output: its entry in a registry of plain functions.
#pragma once

#include "task/example.h"

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace penelope {

struct DepthRange {
    int first;
    int last;
};

// What depth means: nested operators (listops), hops of the shortest path (prosqa), hops of the proof (prontoqa), edges from the
// start to the end (thread).
struct DatasetOptions {
    uint64_t                 seed = 0;
    size_t                   n_train;
    size_t                   n_valid;
    size_t                   n_test;
    DepthRange               depth; // of train and valid
    DepthRange               test_depth;
    std::vector<std::string> operators;      // listops: those to draw from; empty: all
    double                   branch_p  = 0;  // listops: chance that a digit argument becomes an operator of its own
    int                      max_steps = -1; // listops: transitions kept in a trace, -1 = all
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

// What answering without reasoning gives on a set of examples.
struct ChanceLevel {
    std::string how;
    double      share; // of examples answered correctly
};

// Named properties of an example that an audit counts, such as ("depth", "3").
using Facets = std::vector<std::pair<std::string, std::string>>;

// What the comparison of methods fixes for a task.
struct Protocol {
    double  cot_epochs     = 3;
    int64_t latent_updates = 1500;
    int     batch_size     = 4;
    int     n_thoughts     = 6; // Coconut's
};

struct Task {
    const char *              name;
    DatasetOptions            defaults;     // the sizes of the paper
    std::vector<const char *> task_options; // flags of `penelope data` that not every task takes
    Protocol                  protocol;

    // Deterministic in the options; no two examples of the set share a question hash. Throws Error (usage) for options
    // out of range or asking for more different questions than there are. The test set depends on neither the size of
    // train nor that of valid.
    Dataset (*generate)(const DatasetOptions & options);

    // The answer in generated text (what stands after the answer prefix), in the form of the gold answers; empty = not parsed.
    std::string (*extract)(const std::string & text);

    // What guessing gives on these examples, at least one. The first level is the one a model has to beat.
    std::vector<ChanceLevel> (*chance)(const std::vector<Example> & examples);

    // The answer behind the first level, where it follows from the question; null where it does not.
    std::string (*baseline_answer)(const std::string & question);

    // The question in the form that is hashed: two questions with the same one count as the same.
    std::string (*normalize)(const std::string & question);

    // Whether the question has the marks of this task, which no other data has.
    bool (*recognizes)(const std::string & question);

    Facets (*facets)(const Example & example);

    // What stands in mind after each step, in words of the trace, then what stands there at the end. Empty without steps.
    std::vector<std::string> (*results)(const Example & example);

    // What the first step starts from, in the same form.
    std::string (*start)(const Example & example);

    const char * answer_prefix; // what a trained model writes before an answer, unless told otherwise

    const char * marks; // what its questions are recognized by, for people: "every question is ..."
};

const std::vector<Task> & tasks();

// The targets of --step-loss: the results the file gives and then the answer, else those the task reads from the steps.
std::vector<std::string> step_results(const Task & task, const Example & example);

// What the chain of results begins with: what the file says, else what the task reads from question or steps. Needs steps.
std::string chain_start(const Task & task, const Example & example);

// Also by the name "generic". Throws Error (usage) naming the known tasks.
const Task & find_task(const std::string & name);

// The task of data that belongs to none of the above: its answers are compared as texts (see task/answer_reader.h). It makes no
// data: generate is null.
const Task & generic_task();

// The task whose questions these are, by shape alone; null if they belong to none.
const Task * recognize_questions(const std::vector<Example> & examples);

// The task whose questions these are, by shape, if it can read their answers too; null if they belong to none.
const Task * recognize_task(const std::vector<Example> & examples);

} // namespace penelope
