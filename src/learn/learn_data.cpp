#include "learn/learn_data.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/format.h"
#include "base/sha256.h"
#include "learn/text_data.h"
#include "task/dataset_split.h"
#include "task/example_format.h"
#include "task/question.h"
#include "task/target_text.h"
#include "text/prompt_template.h"
#include "train/training_data.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr size_t kFewestQuestionsOfData = 10;

std::set<std::string> questions_of(const std::vector<Example> & examples) {
    std::set<std::string> questions;
    for (const Example & example : examples) {
        questions.insert(normalize_text(example.question));
    }
    return questions;
}

// Drops the examples whose question is among these; returns how many.
size_t drop_questions(std::vector<Example> & examples, const std::set<std::string> & questions) {
    const auto   end = std::remove_if(examples.begin(), examples.end(), [&](const Example & example) {
        return questions.count(normalize_text(example.question)) > 0;
    });
    const size_t n   = size_t(examples.end() - end);
    examples.erase(end, examples.end());
    return n;
}

void keep_first(std::vector<Example> & examples, size_t n) {
    examples.resize(std::min(examples.size(), n));
}

double tenth(size_t n, size_t most) {
    return std::clamp(double(n) / 10, 1.0, double(most));
}

// Takes valid and test from the training examples where they are missing.
void divide(Dataset & parts, uint64_t seed) {
    const size_t n        = parts.train.size();
    const bool   no_valid = parts.valid.empty(), no_test = parts.test.empty();
    if (!no_valid && !no_test) {
        return;
    }
    const double      n_valid = no_valid ? tenth(n, kMostValid) : 0, n_test = no_test ? tenth(n, kMostTest) : 0;
    const SplitRatios shares{ std::max(1.0, double(n) - n_valid - n_test), n_valid, n_test };
    Dataset           split = split_dataset(parts.train, shares, seed);
    parts.train             = std::move(split.train);
    if (no_valid) {
        parts.valid = std::move(split.valid);
    }
    if (no_test) {
        parts.test = std::move(split.test);
    }
}

void check_same_format(const Dataset & parts, const std::string & path) {
    const ExampleKind kind = parts.train.front().kind;
    for (const std::vector<Example> * part : { &parts.valid, &parts.test }) {
        if (!part->empty() && part->front().kind != kind) {
            throw Error(ErrorKind::format,
                        path + ": train has format '" + format_of(kind).name + "', valid or test has format '" +
                            format_of(part->front().kind).name + "'",
                        "give all files in one format");
        }
    }
}

std::vector<Example> read_part(const std::string & dir, const std::string & name, LearnData & data) {
    const std::string path = find_split(dir, name);
    if (path.empty()) {
        return {};
    }
    data.sum += sha256_file(path);
    return read_examples(path);
}

// Completions and chat messages longer than a phrase.
bool is_free_text(const std::vector<Example> & examples) {
    constexpr double kPhraseBytes = 64;
    double           all          = 0;
    for (const Example & example : examples) {
        all += double(example.answer.size());
    }
    return examples.front().kind != ExampleKind::question && all > kPhraseBytes * double(examples.size());
}

std::string prefix_of(const LearnData & data) {
    return data.task.task == &generic_task() ? format_of(data.parts.train.front().kind).answer_prefix
                                             : data.task.task->answer_prefix;
}

} // namespace

LearnData read_learn_data(const std::string & path, uint64_t seed) {
    LearnData data;
    if (is_plain_text(path)) {
        return read_text_data(path);
    }
    if (fs::is_directory(path)) {
        get_split(path, "train"); // throws if it is missing
        data.parts.train = read_part(path, "train", data);
        data.parts.valid = read_part(path, "valid", data);
        data.parts.test  = read_part(path, "test", data);
        check_same_format(data.parts, path);
    } else {
        data.parts.train = read_examples(path);
        data.sum         = sha256_file(path);
    }
    data.sum                            = sha256_hex(data.sum);
    const std::set<std::string> all     = questions_of(data.parts.train);
    const bool                  is_kept = !data.parts.valid.empty() && !data.parts.test.empty();
    if (all.size() < kFewestQuestionsOfData && !is_kept) {
        throw Error(ErrorKind::usage,
                    path + ": has " + std::to_string(all.size()) + " different questions, needs at least " +
                        std::to_string(kFewestQuestionsOfData),
                    "some questions are kept for scoring; give more examples");
    }
    data.n_leaks = drop_questions(data.parts.train, questions_of(data.parts.test));
    data.n_leaks += drop_questions(data.parts.train, questions_of(data.parts.valid));
    if (data.parts.train.empty()) {
        throw Error(ErrorKind::usage, path + ": every training question is a question of valid or test",
                    "give training examples with other questions");
    }
    divide(data.parts, seed);
    keep_first(data.parts.valid, kMostValid);
    keep_first(data.parts.test, kMostTest);
    data.task          = choose_task("", "", data.parts.train);
    data.by_perplexity = is_free_text(data.parts.train);
    return data;
}

void write_learn_data(const LearnData & data, const std::string & dir) {
    fs::create_directories(dir);
    write_file((fs::path(dir) / "train.jsonl").string(), examples_to_jsonl(data.parts.train), true);
    write_file((fs::path(dir) / "valid.jsonl").string(), examples_to_jsonl(data.parts.valid), true);
    write_file((fs::path(dir) / "test.jsonl").string(), examples_to_jsonl(data.parts.test), true);
}

std::string no_steps_reason(const LearnData & data) {
    if (data.is_text) {
        return "plain text has no steps";
    }
    const std::vector<Example> & train = data.parts.train;
    if (train.front().kind != ExampleKind::question) {
        return std::string("data of the format '") + format_of(train.front().kind).name + "' has no steps";
    }
    const auto n =
        size_t(std::count_if(train.begin(), train.end(), [](const Example & e) { return !e.steps.empty(); }));
    if (n == 0) {
        return "no example has steps";
    }
    if (2 * n < train.size()) {
        return "only " + std::to_string(n) + " of " + std::to_string(train.size()) + " examples have steps";
    }
    return "";
}

double mean_bytes(const std::vector<Example> & examples) {
    double all = 0;
    for (const Example & example : examples) {
        all += double(example.question.size() + target_text(example, 0, default_answer_prefix).size());
    }
    return all / double(std::max<size_t>(1, examples.size()));
}

size_t drop_longer(LearnData & data, const Tokenizer & tokenizer, size_t n_context) {
    constexpr size_t     kLatentRows = 34; // memory, readout and the end of the answer
    const ExamplePrompts prompts(tokenizer, format_of(data.parts.train.front().kind).prompt_template);
    const std::string    prefix = prefix_of(data);
    size_t               n      = 0;
    for (std::vector<Example> * part : { &data.parts.train, &data.parts.valid, &data.parts.test }) {
        const auto end = std::remove_if(part->begin(), part->end(), [&](const Example & example) {
            return prompts.tokens(example).size() + tokenizer.encode(target_text(example, 0, prefix)).size() +
                       kLatentRows >
                   n_context;
        });
        n += size_t(part->end() - end);
        part->erase(end, part->end());
        if (part->empty()) {
            throw Error(ErrorKind::usage,
                        "the examples do not fit the model's context of " + std::to_string(n_context) + " tokens",
                        "shorten them, or take another model");
        }
    }
    return n;
}

LearnDataFacts data_facts(const LearnData & data, const Tokenizer & tokenizer) {
    const std::vector<Example> & train  = data.parts.train;
    const std::string            prefix = prefix_of(data);
    const ExamplePrompts         prompts(tokenizer, format_of(train.front().kind).prompt_template);
    LearnDataFacts               facts;
    facts.n_examples = train.size();
    facts.is_text    = data.is_text;
    double all       = 0;
    for (const std::vector<Example> * part : { &train, &data.parts.valid, &data.parts.test }) {
        for (const Example & example : *part) {
            const size_t n_prompt = prompts.tokens(example).size();
            const size_t n_target = tokenizer.encode(target_text(example, 0, prefix)).size() + 1;
            const size_t n_answer = tokenizer.encode(target_text(example, example.steps.size(), prefix)).size() + 1;
            facts.n_prompt        = std::max(facts.n_prompt, n_prompt);
            facts.n_target        = std::max(facts.n_target, n_target);
            facts.n_answer        = std::max(facts.n_answer, n_answer);
            all += part == &train ? double(n_prompt + n_target) : 0;
        }
    }
    for (const Example & example : train) {
        facts.n_steps                    = std::max(facts.n_steps, example.steps.size());
        std::vector<std::string> targets = step_results(*data.task.task, example);
        if (!example.steps.empty()) {
            targets.push_back(chain_start(*data.task.task, example));
        }
        for (const std::string & target : targets) {
            facts.n_result_tokens = std::max(facts.n_result_tokens, tokenizer.encode(target).size());
        }
    }
    facts.n_mean = all / double(train.size());
    return facts;
}

} // namespace penelope
