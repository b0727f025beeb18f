// Examples as tokens, with the byte-level vocabulary: token b is byte b, 256 begins a text and 257 ends it.
#include "support/errors.h"
#include "train/training_data.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace penelope;
using penelope::test::contains;
using penelope::test::error_of;

namespace {

const std::vector<Example> kExamples{ { "a", "Q1", { "s1", "s2" }, "7" }, { "b", "a longer one", {}, "42" } };

std::string text_of(const std::vector<int32_t> & ids) {
    std::string text;
    for (int32_t id : ids) {
        text += id == 256 ? "^" : id == 257 ? "$" : std::string(1, char(id));
    }
    return text;
}

TrainingData data() {
    return TrainingData(kExamples, Tokenizer(byte_level_vocabulary()), { "Q: {question}\nA:", "### " });
}

} // namespace

TEST_CASE("prompt with BOS; target with the steps that are left, the answer and EOS") {
    const TrainingData d = data();
    CHECK(text_of(d.prompt(0)) == "^Q: Q1\nA:");
    CHECK(text_of(d.tokenized(0, 0).target) == "s1\ns2\n### 7$");
    CHECK(text_of(d.tokenized(0, 1).target) == "s2\n### 7$");
    CHECK(text_of(d.tokenized(0, 2).target) == "### 7$");
    CHECK(text_of(d.tokenized(0, 1 << 20).target) == "### 7$");
    CHECK(text_of(d.tokenized(1, 0).target) == "### 42$");
    CHECK(d.tokenized(1, 0).prompt == d.prompt(1));
}

TEST_CASE("a chain of results takes the place of the steps") {
    const TrainingData d = data();
    CHECK(text_of(d.with_chain(0, { 'x', 'y' }).target) == "xy\n### 7$");
    CHECK(text_of(d.with_chain(1, {}).target) == "### 42$");
    CHECK(d.with_chain(0, { 'x' }).prompt == d.prompt(0));
}

TEST_CASE("the longest example is found and can be left out") {
    TrainingData d = data();
    // "^Q: a longer one\nA:" and "### 42$"; the first has 9 + 12 tokens with all its steps, 9 + 6 without.
    CHECK(d.longest(2).example == 1);
    CHECK(d.longest(2).n_rows == 19 + 7);
    CHECK(d.drop_longer(26, 0) == 0);
    CHECK(d.drop_longer(25, 0) == 1);
    CHECK(d.size() == 1);
    CHECK(d.example(0).id == "a");
}

TEST_CASE("every example is tokenized once before the first update") {
    std::vector<Example> examples;
    for (int i = 0; i < 500; i++) {
        examples.push_back(
            { std::to_string(i), "question " + std::to_string(i), { "a step" }, std::string(i % 7, '7') });
    }
    TrainingData d(examples, Tokenizer(byte_level_vocabulary()), { "Q: {question}\nA:", "### " });
    CHECK(d.n_encoded() == 500); // prompts
    CHECK(d.drop_longer(36, 0) > 0);
    CHECK(d.longest(0).n_rows == 36);
    CHECK(d.longest(0).n_rows == 36);
    CHECK(d.n_encoded() == 1000); // and targets
    size_t n_rows = 0;
    for (size_t i = 0; i < d.size(); i++) {
        n_rows = std::max(n_rows, d.prompt(i).size() + d.tokenized(i, 0).target.size());
        CHECK(text_of(d.prompt(i)) == "^Q: question " + d.example(i).id + "\nA:");
    }
    CHECK(n_rows == 36);
}

TEST_CASE("lengths are of the stage they are asked for, also after some examples went") {
    TrainingData d = data();
    CHECK(d.longest(0).n_rows == 19 + 7);
    CHECK(d.drop_longer(25, 0) == 1);
    CHECK(d.longest(0).n_rows == 9 + 12);
    CHECK(d.longest(2).n_rows == 9 + 6);
}

TEST_CASE("a vocabulary without EOS, or that cannot encode an answer, is an error") {
    TokenizerData endless = byte_level_vocabulary();
    endless.eos.reset();
    CHECK(contains(error_of([&] {
                       TrainingData(kExamples, Tokenizer(endless), { "{question}", "### " });
                   }).message(),
                   "EOS token"));
}
