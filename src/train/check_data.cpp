#include "train/check_data.h"

#include "arch/config.h"
#include "gguf/reader.h"
#include "task/baseline.h"
#include "task/choose_task.h"
#include "task/example_format.h"
#include "task/question.h"
#include "task/target_text.h"
#include "text/prompt_template.h"
#include "train/training_data.h"

#include <algorithm>
#include <map>
#include <set>

namespace penelope {

namespace {

OrderedJson steps_json(const std::vector<Example> & examples) {
    size_t fewest = examples.front().steps.size(), most = 0, all = 0;
    for (const Example & example : examples) {
        fewest = std::min(fewest, example.steps.size());
        most   = std::max(most, example.steps.size());
        all += example.steps.size();
    }
    return { { "fewest", fewest }, { "mean", double(all) / double(examples.size()) }, { "most", most } };
}

OrderedJson tokens_json(const TrainingData & data, size_t n_context) {
    size_t      all = 0, longest = 0, too_long = 0;
    std::string longest_id;
    for (size_t i = 0; i < data.size(); i++) {
        const TokenizedExample example = data.tokenized(i, 0);
        const size_t           n       = example.prompt.size() + example.target.size();
        all += n;
        too_long += n > n_context;
        if (n > longest) {
            longest    = n;
            longest_id = data.example(i).id;
        }
    }
    return { { "mean", double(all) / double(data.size()) },
             { "longest", longest },
             { "longest_id", longest_id },
             { "context", n_context },
             { "too_long", too_long } };
}

} // namespace

OrderedJson check_data(const std::string & path, const std::string & base, const std::string & task) {
    const std::vector<Example>    examples = read_examples(path);
    const ExampleFormat &         format   = format_of(examples.front().kind);
    std::set<std::string>         questions;
    std::map<std::string, size_t> answers;
    for (const Example & example : examples) {
        questions.insert(normalize_text(example.question));
        answers[example.answer]++;
    }
    const auto       frequent = std::max_element(answers.begin(), answers.end(),
                                                 [](const auto & a, const auto & b) { return a.second < b.second; });
    const TaskChoice choice   = choose_task(task, "", examples);
    OrderedJson      report   = {
               { "status", "ok" },
               { "file", path },
               { "format", format.name },
               { "examples", examples.size() },
               { "steps", steps_json(examples) },
               { "questions", questions.size() },
               { "answers", answers.size() },
               { "most_frequent",
                 { { "answer", frequent->first }, { "share", double(frequent->second) / double(examples.size()) } } },
               { "task", choice.task->name },
               { "task_reason", choice.why },
    };
    std::string prompt;
    if (!base.empty()) {
        const GgufReader   file = GgufReader::open(base);
        const TrainingData data(examples, Tokenizer::from_gguf(file), { format.prompt_template, format.answer_prefix });
        report["tokens"] = tokens_json(data, size_t(read_model_config(file).n_ctx_train));
        prompt           = data.prompt_text(0);
    } else if (format.kind != ExampleKind::chat) {
        prompt = prompt_text(format.prompt_template, examples.front().question);
    } else {
        prompt = examples.front().question; // the template comes with the model
    }
    report["first"] = { { "prompt", prompt },
                        { "target", target_text(examples.front(), 0, format.answer_prefix) },
                        { "results", step_results(*choice.task, examples.front()) } };
    if (!examples.front().steps.empty()) {
        report["first"]["start"] = chain_start(*choice.task, examples.front());
    }
    return report;
}

} // namespace penelope
