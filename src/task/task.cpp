#include "task/task.h"

#include "base/error.h"
#include "base/format.h"
#include "task/extract.h"
#include "task/generic.h"
#include "task/listops.h"
#include "task/prontoqa.h"
#include "task/prosqa.h"
#include "task/question.h"
#include "task/target_text.h"
#include "task/thread.h"
#include "text/prompt_template.h"

#include <algorithm>

namespace penelope {

namespace {

DatasetOptions sizes(size_t n_train, size_t n_valid, size_t n_test, DepthRange depth, DepthRange test_depth,
                     int max_steps = -1) {
    DatasetOptions options = {};
    options.n_train        = n_train;
    options.n_valid        = n_valid;
    options.n_test         = n_test;
    options.depth          = depth;
    options.test_depth     = test_depth;
    options.max_steps      = max_steps;
    return options;
}

} // namespace

const std::vector<Task> & tasks() {
    static const std::vector<Task> registry = {
        { "listops",
          sizes(4800, 800, 1600, { 1, 8 }, { 1, 12 }, 6),
          { "operators", "branch", "max-steps" },
          { 3, 1500, 4, 8 },
          generate_listops,
          extract_digit,
          listops_chance,
          listops_baseline_answer,
          normalize_bracketed,
          is_listops_question,
          listops_facets,
          listops_results,
          generic_start,
          default_answer_prefix,
          "every question is an expression such as Evaluate: [MAX 3 [MIN 4 7] 2]" },
        { "prosqa",
          sizes(17886, 300, 500, { 3, 6 }, { 3, 6 }),
          {},
          { 1, 1500, 4, 6 },
          generate_prosqa,
          extract_membership,
          prosqa_chance,
          nullptr,
          normalize_text,
          is_prosqa_question,
          prosqa_facets,
          prosqa_results,
          generic_start,
          default_answer_prefix,
          "every question ends with two concepts of ProsQA, as in: Is Tom a lempus or scrompus?" },
        { "prontoqa",
          sizes(9000, 200, 800, { 5, 5 }, { 5, 5 }),
          {},
          { 2, 3000, 8, 6 },
          generate_prontoqa,
          extract_truth,
          prontoqa_chance,
          nullptr,
          normalize_text,
          is_prontoqa_question,
          prontoqa_facets,
          prontoqa_results,
          generic_start,
          default_answer_prefix,
          "every question has rules about concepts of PrOntoQA (lempus, wumpus, ...) and ends with: True or false: Max "
          "is hot." },
        // The answer stands alone on the last line, which needs no mark.
        { "thread",
          sizes(40000, 800, 4800, { 1, 8 }, { 1, 8 }),
          { "chains", "min-chains", "surface" },
          {},
          generate_thread,
          extract_end,
          thread_chance,
          thread_baseline_answer,
          normalize_thread,
          is_thread_question,
          thread_facets,
          thread_results,
          thread_start,
          "",
          "every question lists edges and a start, as in: ab bc cc ?a, or tells who hands the key to whom" },
    };
    return registry;
}

const Task & generic_task() {
    static const Task task = { "generic",
                               {},
                               {},
                               {},
                               nullptr,
                               extract_all,
                               generic_chance,
                               nullptr,
                               normalize_text,
                               [](const std::string &) { return false; },
                               generic_facets,
                               generic_results,
                               generic_start,
                               default_answer_prefix,
                               "" };
    return task;
}

std::vector<std::string> step_results(const Task & task, const Example & example) {
    if (example.results.empty()) {
        return task.results(example);
    }
    std::vector<std::string> results;
    // One more than steps: the first is the start.
    for (size_t i = example.results.size() - example.steps.size(); i < example.results.size(); i++) {
        results.push_back(with_leading_space(example.results[i]));
    }
    results.push_back(with_leading_space(example.answer));
    return results;
}

std::string chain_start(const Task & task, const Example & example) {
    return example.results.size() > example.steps.size() ? with_leading_space(example.results.front())
                                                         : task.start(example);
}

const Task & find_task(const std::string & name) {
    if (name == generic_task().name) {
        return generic_task();
    }
    std::string known = generic_task().name;
    for (const Task & task : tasks()) {
        if (name == task.name) {
            return task;
        }
        known += std::string(", ") + task.name;
    }
    throw Error(ErrorKind::usage, "unknown task: " + in_quotes(name), "known tasks: " + known);
}

const Task * recognize_questions(const std::vector<Example> & examples) {
    for (const Task & task : tasks()) {
        const auto asks = [&](const Example & example) { return task.recognizes(example.question); };
        if (!examples.empty() && std::all_of(examples.begin(), examples.end(), asks)) {
            return &task;
        }
    }
    return nullptr;
}

const Task * recognize_task(const std::vector<Example> & examples) {
    const Task * task  = recognize_questions(examples);
    const auto answers = [&](const Example & example) { return task->extract(example.answer) == trim(example.answer); };
    return task && std::all_of(examples.begin(), examples.end(), answers) ? task : nullptr;
}

} // namespace penelope
