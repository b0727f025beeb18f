#include "task/split.h"

#include "base/format.h"
#include "base/sha256.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr size_t max_split_size  = 10'000'000;
constexpr int    max_repetitions = 10'000; // draws in a row that bring nothing new before we give up

void check_depths(const std::string & task, const char * flag, const DepthRange & range, const DepthRange & possible) {
    if (range.first > range.last || range.first < possible.first || range.last > possible.last) {
        throw Error(ErrorKind::usage,
                    std::string(flag) + ": " + std::to_string(range.first) + "-" + std::to_string(range.last) +
                        " is not a valid range of depths of " + task,
                    "expected a range within " + std::to_string(possible.first) + "-" + std::to_string(possible.last));
    }
}

// An option that only some tasks take, by its name in Task::task_options.
struct TaskOption {
    const char * name;
    bool (*is_set)(const DatasetOptions & options);
};

const std::vector<TaskOption> & task_options() {
    static const DatasetOptions          usual = {};
    static const std::vector<TaskOption> table = {
        { "operators", [](const DatasetOptions & options) { return options.operators != usual.operators; } },
        { "branch", [](const DatasetOptions & options) { return options.branch_p != usual.branch_p; } },
        { "max-steps", [](const DatasetOptions & options) { return options.max_steps != usual.max_steps; } },
        { "chains", [](const DatasetOptions & options) { return options.n_chains != usual.n_chains; } },
        { "min-chains", [](const DatasetOptions & options) { return options.min_chains != usual.min_chains; } },
        { "surface", [](const DatasetOptions & options) { return options.surface != usual.surface; } },
    };
    return table;
}

bool takes(const Task & task, const TaskOption & option) {
    const auto is_this = [&](const std::string & name) { return name == option.name; };
    return std::any_of(task.task_options.begin(), task.task_options.end(), is_this);
}

std::vector<std::string> tasks_that_take(const TaskOption & option) {
    std::vector<std::string> names;
    for (const Task & task : tasks()) {
        if (takes(task, option)) {
            names.emplace_back(task.name);
        }
    }
    return names;
}

void check_options(const std::string & task, const DatasetOptions & options, const DepthRange & possible) {
    if (options.n_train + options.n_valid + options.n_test == 0) {
        throw Error(ErrorKind::usage, task + ": all sizes are 0", "give a size above 0 for train, valid or test");
    }
    for (const size_t n : { options.n_train, options.n_valid, options.n_test }) {
        if (n > max_split_size) {
            throw Error(ErrorKind::usage, task + ": " + std::to_string(n) + " examples exceed the limit of one file",
                        "give at most " + std::to_string(max_split_size));
        }
    }
    check_depths(task, "depth", options.depth, possible);
    check_depths(task, "test depth", options.test_depth, possible);
    if (!(options.branch_p >= 0.0 && options.branch_p <= 1.0)) {
        throw Error(ErrorKind::usage, task + ": --branch must be between 0 and 1");
    }
    if (options.max_steps < -1) {
        throw Error(ErrorKind::usage, task + ": --max-steps must be >= 0");
    }
    for (const TaskOption & option : task_options()) {
        if (option.is_set(options) && !takes(find_task(task), option)) {
            throw Error(ErrorKind::usage, "--" + std::string(option.name) + " is not an option of task " + task,
                        "it is an option of " + join(tasks_that_take(option), ", "));
        }
    }
}

} // namespace

bool QuestionSet::add(const std::string & question) {
    return hashes_.insert(sha256_hex(normalize_(question))).second;
}

Dataset generate_splits(const std::string & task, const DatasetOptions & options, DepthRange possible,
                        std::string (*normalize)(const std::string &), const FillSplit & fill) {
    check_options(task, options, possible);
    QuestionSet seen(normalize, options.excluded);
    const auto  make = [&](const char * split, size_t n, const DepthRange & depth) {
        if (n == 0) {
            return std::vector<Example>();
        }
        Rng                  rng(options.seed, stream_id(task + "." + split));
        std::vector<Example> examples = fill({ task, split, n, depth }, seen, rng);
        for (size_t i = 0; i < examples.size(); ++i) {
            examples[i].id = task + "-" + split + "-" + std::to_string(i);
        }
        return examples;
    };
    Dataset dataset;
    dataset.test  = make("test", options.n_test, options.test_depth);
    dataset.valid = make("valid", options.n_valid, options.depth);
    dataset.train = make("train", options.n_train, options.depth);
    return dataset;
}

std::vector<Example> fill_by_drawing(const SplitRequest & request, QuestionSet & seen,
                                     const std::function<Example(size_t)> & draw) {
    std::vector<Example> examples;
    int                  repetitions = 0;
    while (examples.size() < request.n) {
        Example example = draw(examples.size());
        if (seen.add(example.question)) {
            examples.push_back(std::move(example));
            repetitions = 0;
        } else if (++repetitions == max_repetitions) {
            throw too_few_questions(request, "");
        }
    }
    return examples;
}

int draw_depth(const DepthRange & range, Rng & rng) {
    return range.first + static_cast<int>(rng.below(static_cast<uint64_t>(range.last - range.first) + 1));
}

Error too_few_questions(const SplitRequest & request, const std::string & where) {
    return Error(ErrorKind::usage,
                 request.task + " " + request.split + ": cannot generate " + std::to_string(request.n) +
                     " distinct questions" + where,
                 "ask for fewer examples or a wider range of depths");
}

} // namespace penelope
