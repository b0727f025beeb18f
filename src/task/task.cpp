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

#include <algorithm>

namespace penelope {

namespace {

Task listops() {
    Task t;
    t.name                    = "listops";
    t.defaults.n_train        = 4800;
    t.defaults.n_valid        = 800;
    t.defaults.n_test         = 1600;
    t.defaults.depth          = { 1, 8 };
    t.defaults.test_depth     = { 1, 12 };
    t.defaults.max_steps      = 6;
    t.task_options            = { "operators", "branch", "max-steps" };
    t.protocol.cot_epochs     = 3;
    t.protocol.latent_updates = 1500;
    t.protocol.batch_size     = 4;
    t.protocol.n_thoughts     = 8;
    t.generate                = generate_listops;
    t.extract                 = extract_digit;
    t.chance                  = listops_chance;
    t.baseline_answer         = listops_baseline_answer;
    t.normalize               = normalize_bracketed;
    t.recognizes              = is_listops_question;
    t.facets                  = listops_facets;
    t.results                 = listops_results;
    t.start                   = generic_start;
    t.marks                   = "every question is an expression such as Evaluate: [MAX 3 [MIN 4 7] 2]";
    return t;
}

Task prosqa() {
    Task t;
    t.name                    = "prosqa";
    t.defaults.n_train        = 17886;
    t.defaults.n_valid        = 300;
    t.defaults.n_test         = 500;
    t.defaults.depth          = { 3, 6 };
    t.defaults.test_depth     = { 3, 6 };
    t.protocol.cot_epochs     = 1;
    t.protocol.latent_updates = 1500;
    t.protocol.batch_size     = 4;
    t.protocol.n_thoughts     = 6;
    t.generate                = generate_prosqa;
    t.extract                 = extract_membership;
    t.chance                  = prosqa_chance;
    t.normalize               = normalize_text;
    t.recognizes              = is_prosqa_question;
    t.facets                  = prosqa_facets;
    t.results                 = prosqa_results;
    t.start                   = generic_start;
    t.marks                   = "every question ends with two concepts of ProsQA, as in: Is Tom a lempus or scrompus?";
    return t;
}

Task prontoqa() {
    Task t;
    t.name                    = "prontoqa";
    t.defaults.n_train        = 9000;
    t.defaults.n_valid        = 200;
    t.defaults.n_test         = 800;
    t.defaults.depth          = { 5, 5 };
    t.defaults.test_depth     = { 5, 5 };
    t.protocol.cot_epochs     = 2;
    t.protocol.latent_updates = 3000;
    t.protocol.batch_size     = 8;
    t.protocol.n_thoughts     = 6;
    t.generate                = generate_prontoqa;
    t.extract                 = extract_truth;
    t.chance                  = prontoqa_chance;
    t.normalize               = normalize_text;
    t.recognizes              = is_prontoqa_question;
    t.facets                  = prontoqa_facets;
    t.results                 = prontoqa_results;
    t.start                   = generic_start;
    t.marks = "every question has rules about concepts of PrOntoQA (lempus, wumpus, ...) and ends with: True or false: "
              "Max is hot.";
    return t;
}

Task thread() {
    Task t;
    t.name                = "thread";
    t.defaults.n_train    = 40000;
    t.defaults.n_valid    = 800;
    t.defaults.n_test     = 4800;
    t.defaults.depth      = { 1, 8 };
    t.defaults.test_depth = { 1, 8 };
    t.task_options        = { "chains", "min-chains", "surface" };
    t.generate            = generate_thread;
    t.extract             = extract_end;
    t.chance              = thread_chance;
    t.baseline_answer     = thread_baseline_answer;
    t.normalize           = normalize_thread;
    t.recognizes          = is_thread_question;
    t.facets              = thread_facets;
    t.results             = thread_results;
    t.start               = thread_start;
    t.answer_prefix       = ""; // the answer stands alone on the last line
    t.marks = "every question lists edges and a start, as in: ab bc cc ?a, or tells who hands the key to whom";
    return t;
}

Task generic() {
    Task t;
    t.name       = "generic";
    t.extract    = extract_all;
    t.chance     = generic_chance;
    t.normalize  = normalize_text;
    t.recognizes = [](const std::string &) { return false; };
    t.facets     = generic_facets;
    t.results    = generic_results;
    t.start      = generic_start;
    return t;
}

} // namespace

const std::vector<Task> & tasks() {
    static const std::vector<Task> registry{ listops(), prosqa(), prontoqa(), thread() };
    return registry;
}

const Task & generic_task() {
    static const Task task = generic();
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
