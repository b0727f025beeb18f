#include "train/training_data.h"

#include "base/error.h"
#include "base/format.h"
#include "task/target_text.h"

#include <algorithm>
#include <filesystem>

namespace penelope {

namespace fs = std::filesystem;

TrainingData::TrainingData(std::vector<Example> examples, const Tokenizer & tokenizer, TextLayout layout)
    : examples_(std::move(examples)), tokenizer_(tokenizer), layout_(std::move(layout)),
      prompts_(tokenizer, layout_.prompt_template) {
    if (!tokenizer_.eos()) {
        throw Error(ErrorKind::unsupported, "the model has no EOS token; training needs one to end answers");
    }
    end_ = *tokenizer_.eos();
    for (const Example & example : examples_) {
        const std::string text = prompts_.text(example) + target_text(example, 0, layout_.answer_prefix);
        if (tokenizer_.n_unencodable(text) > 0) {
            throw Error(ErrorKind::format,
                        "example " + in_quotes(example.id) + ": text has bytes that the tokenizer cannot encode");
        }
    }
    prompt_tokens_.reserve(examples_.size());
    for (const Example & example : examples_) {
        prompt_tokens_.push_back(prompts_.tokens(example));
    }
    n_encoded_ = examples_.size();
}

std::vector<int32_t> TrainingData::encode(const std::string & text) const {
    n_encoded_++;
    return tokenizer_.encode(text);
}

std::string TrainingData::prompt_text(size_t i) const {
    return prompts_.text(examples_[i]);
}

TokenizedExample TrainingData::tokenized(size_t i, int n_skip_steps) const {
    TokenizedExample example{ prompt(i),
                              encode(target_text(examples_[i], size_t(n_skip_steps), layout_.answer_prefix)) };
    example.target.push_back(end_);
    return example;
}

TokenizedExample TrainingData::with_chain(size_t i, const std::vector<int32_t> & chain) const {
    TokenizedExample     example = tokenized(i, int(examples_[i].steps.size()));
    std::vector<int32_t> before  = chain;
    if (!chain.empty()) {
        const std::vector<int32_t> newline = encode("\n");
        before.insert(before.end(), newline.begin(), newline.end());
    }
    example.target.insert(example.target.begin(), before.begin(), before.end());
    return example;
}

TokenizedExample TrainingData::with_teacher(size_t i, int n_skip_steps) const {
    TokenizedExample example = tokenized(i, n_skip_steps);
    std::string      text;
    for (size_t step = 0; step + 1 < examples_[i].steps.size(); step++) {
        text += examples_[i].steps[step] + "\n";
    }
    if (!text.empty()) {
        example.trace = encode(text);
    }
    // The first token that holds a character of the answer is the one the rows before it should know.
    const size_t n_before =
        target_text(examples_[i], size_t(n_skip_steps), layout_.answer_prefix).size() - examples_[i].answer.size();
    size_t n_bytes = 0;
    for (int32_t token : example.target) {
        n_bytes += tokenizer_.decode({ token }).size();
        if (n_bytes > n_before) {
            break;
        }
        example.distill_position++;
    }
    example.distill_position =
        std::min(example.distill_position, int(example.target.size()) - 2); // an answer without characters
    return example;
}

const std::vector<size_t> & TrainingData::rows(int n_skip_steps) const {
    std::vector<size_t> & rows = rows_[n_skip_steps];
    if (rows.empty()) {
        for (size_t i = 0; i < examples_.size(); i++) {
            const TokenizedExample example = tokenized(i, n_skip_steps);
            rows.push_back(example.prompt.size() + example.target.size());
        }
    }
    return rows;
}

size_t TrainingData::drop_longer(size_t n_rows, int n_skip_steps) {
    const std::vector<size_t>         lengths = rows(n_skip_steps);
    std::vector<Example>              fitting;
    std::vector<std::vector<int32_t>> fitting_prompts;
    std::vector<size_t>               fitting_lengths;
    for (size_t i = 0; i < examples_.size(); i++) {
        if (lengths[i] <= n_rows) {
            fitting.push_back(std::move(examples_[i]));
            fitting_prompts.push_back(std::move(prompt_tokens_[i]));
            fitting_lengths.push_back(lengths[i]);
        }
    }
    const size_t n_dropped = examples_.size() - fitting.size();
    examples_              = std::move(fitting);
    prompt_tokens_         = std::move(fitting_prompts);
    rows_                  = { { n_skip_steps, std::move(fitting_lengths) } };
    return n_dropped;
}

TrainingData::Longest TrainingData::longest(int n_skip_steps) const {
    const std::vector<size_t> & lengths = rows(n_skip_steps);
    Longest                     longest;
    for (size_t i = 0; i < lengths.size(); i++) {
        if (lengths[i] > longest.n_rows) {
            longest = { lengths[i], i };
        }
    }
    return longest;
}

std::string find_split(const std::string & dir, const std::string & split) {
    for (const char * extension : { ".jsonl", ".json", ".csv" }) {
        const fs::path path = fs::path(dir) / (split + extension);
        if (fs::is_regular_file(path)) {
            return path.string();
        }
    }
    return "";
}

std::string get_split(const std::string & dir, const std::string & split) {
    const std::string path = find_split(dir, split);
    if (path.empty()) {
        throw Error(ErrorKind::not_found,
                    dir + ": not found: " + split + ".jsonl, " + split + ".json or " + split + ".csv",
                    "make one with penelope data NAME or penelope data split");
    }
    return path;
}

} // namespace penelope
