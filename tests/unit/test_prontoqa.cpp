// PrOntoQA: every conclusion against a second reading of the text by forward chaining, the structure and the shares of
// the published files, separation, determinism.
#include <doctest/doctest.h>

#include "base/error.h"
#include "base/sha256.h"
#include "support/prontoqa_checker.h"
#include "task/prontoqa.h"

#include <algorithm>
#include <cmath>

using namespace penelope;

static const Dataset & default_data() {
    static const Dataset data = generate_prontoqa(find_task("prontoqa").defaults);
    return data;
}

TEST_CASE("the second reading takes the published form and refuses a wrong proof") {
    // Shortened from the structure of a published example.
    Example example = { "x",
                        "Each zumpus is a gorpus. Gorpuses are floral. Dumpuses are not floral. Every impus is cold. "
                        "Stella is an impus. "
                        "Stella is a zumpus. True or false: Stella is not floral.",
                        { "Stella is a zumpus. Each zumpus is a gorpus.", "Stella is a gorpus. Gorpuses are floral.",
                          "Stella is floral." },
                        "False" };
    CHECK(prontoqa_checker::problem(example) == "");
    Example wrong = example;
    wrong.answer  = "True";
    CHECK(prontoqa_checker::problem(wrong) != "");
    wrong          = example;
    wrong.steps[1] = "Stella is a gorpus. Dumpuses are not floral.";
    CHECK(prontoqa_checker::problem(wrong) != "");
    wrong = example;
    wrong.steps.erase(wrong.steps.begin());
    CHECK(prontoqa_checker::problem(wrong) != "");
}

TEST_CASE("every conclusion follows and every proof is sound") {
    double n = 0, negated = 0, plural = 0, rules = 0, is_true = 0, characters = 0, person_first = 0;
    for (const auto * split : { &default_data().train, &default_data().valid, &default_data().test }) {
        for (const Example & example : *split) {
            REQUIRE(prontoqa_checker::problem(example) == "");
            const prontoqa_checker::Reading reading = prontoqa_checker::read(example.question);
            REQUIRE(example.steps.size() == 6);
            REQUIRE(reading.parents.size() == 11);
            REQUIRE(reading.properties.size() == 12);
            REQUIRE(reading.facts.size() == 2);
            REQUIRE(reading.sentences.size() == 26);
            n += 1;
            negated += example.steps.back().find(" not ") != std::string::npos ? 1 : 0;
            plural += reading.n_plural;
            rules += reading.n_rules;
            is_true += example.answer == "True" ? 1 : 0;
            characters += static_cast<double>(example.question.size());
            person_first += example.steps[0].find(reading.facts[0]) != std::string::npos ? 1 : 0;
        }
    }
    // Published shares from 10,000 examples; a share near one half has a standard deviation of .005 there and here.
    CHECK(n == 10000);
    CHECK(std::abs(negated / n - 0.466) < 0.025);
    CHECK(std::abs(plural / rules - 0.499) < 0.006);
    CHECK(std::abs(is_true / n - 0.492) < 0.025);
    CHECK(std::abs(characters / n - 623) < 3);
    CHECK(std::abs(person_first / n - 0.5) < 0.02);
}

TEST_CASE("the sentence against the conclusion stands anywhere, about a concept the proof does not use") {
    double place = 0;
    for (const Example & example : default_data().train) {
        const prontoqa_checker::Reading reading = prontoqa_checker::read(example.question);
        const std::string               step    = example.steps.back();
        const std::string               against =
            prontoqa_checker::negation(step.substr(reading.person.size() + 4, step.size() - reading.person.size() - 5));
        int n_against = 0;
        for (const auto & [kind, property] : reading.properties) {
            if (property == against) {
                ++n_against;
                REQUIRE(prontoqa_checker::consequences(reading).count(kind) == 0);
            }
        }
        REQUIRE(n_against == 1);
        const size_t at =
            std::min(example.question.find(" are " + against + ". "), example.question.find(" is " + against + ". "));
        const std::string before = example.question.substr(0, at);
        place += static_cast<double>(std::count(before.begin(), before.end(), '.'));
    }
    CHECK(std::abs(place / 9000 - 11) < 0.35); // uniform over 0..22
}

TEST_CASE("properties of one question come from different families") {
    const std::vector<std::set<std::string>> families = { { "blue", "red", "brown", "orange" },
                                                          { "small", "large" },
                                                          { "transparent", "opaque" },
                                                          { "hot", "cold", "temperate" } };
    for (const Example & example : default_data().test) {
        const prontoqa_checker::Reading reading = prontoqa_checker::read(example.question);
        for (const std::set<std::string> & family : families) {
            std::set<std::string> used;
            for (const auto & [kind, property] : reading.properties) {
                const std::string bare = property.rfind("not ", 0) == 0 ? property.substr(4) : property;
                if (family.count(bare) == 1) {
                    used.insert(bare);
                }
            }
            REQUIRE(used.size() <= 1);
        }
    }
}

TEST_CASE("sizes, separation, determinism") {
    CHECK(default_data().train.size() == 9000);
    CHECK(default_data().valid.size() == 200);
    CHECK(default_data().test.size() == 800);
    std::set<std::string> questions;
    for (const auto * split : { &default_data().train, &default_data().valid, &default_data().test }) {
        for (const Example & example : *split) {
            questions.insert(example.question);
        }
    }
    CHECK(questions.size() == 10000);
    CHECK(default_data().test[799].id == "prontoqa-test-799");
    CHECK(sha256_hex(examples_to_jsonl(default_data().train)) ==
          "6ff1f3407fe3214e2f146ef7ea8dccbcaf3ffda11dc75e226c1db3abb9c0fe17");
    CHECK(sha256_hex(examples_to_jsonl(default_data().valid)) ==
          "886b853a376be3b603d7f10dbae03c9aeb9dc4a8ddf941ebe1d9f85289ae0e06");
    CHECK(sha256_hex(examples_to_jsonl(default_data().test)) ==
          "e851b2c2704b4cd4346f5e17f66de7bd4c2b7e7611675a454120228bfa07d9ad");
    DatasetOptions options = find_task("prontoqa").defaults;
    options.n_train        = 3;
    options.n_valid        = 0;
    CHECK(examples_to_jsonl(generate_prontoqa(options).test) == examples_to_jsonl(default_data().test));
    options.seed = 1;
    CHECK(examples_to_jsonl(generate_prontoqa(options).test) != examples_to_jsonl(default_data().test));
}

TEST_CASE("any number of hops the vocabulary allows") {
    Rng rng(8);
    for (int n_hops = 1; n_hops <= 6; ++n_hops) {
        for (int i = 0; i < 50; ++i) {
            const Example example = draw_prontoqa_example(n_hops, rng);
            REQUIRE(prontoqa_checker::problem(example) == "");
            REQUIRE(example.steps.size() == static_cast<size_t>(n_hops) + 1);
        }
    }
    DatasetOptions options = find_task("prontoqa").defaults;
    options.n_train        = 300;
    options.depth          = { 2, 4 };
    std::set<size_t> lengths;
    for (const Example & example : generate_prontoqa(options).train) {
        lengths.insert(example.steps.size());
    }
    CHECK(lengths == std::set<size_t>{ 3, 4, 5 });
    options.depth = { 5, 7 };
    CHECK_THROWS_AS(generate_prontoqa(options), Error);
}

TEST_CASE("results: what is known of the person after each step, then the answer") {
    const Example example{ "",
                           "",
                           { "Alex is a tumpus. Tumpuses are gorpuses.", "Alex is a gorpus. Gorpuses are impuses.",
                             "Alex is an impus. Every impus is not happy.", "Alex is not happy." },
                           "False" };
    CHECK(prontoqa_results(example) ==
          std::vector<std::string>{ " gorpus", " impus", " not happy", " False", " False" });
    CHECK(prontoqa_results({ "", "q", {}, "True" }).empty());
    CHECK(prontoqa_results({ "", "q", { "" }, "True" }) == std::vector<std::string>{ " True", " True" });
}

TEST_CASE("chance, recognition, facets") {
    const auto                     example = [](const char * answer) { return Example{ "x", "q", {}, answer }; };
    const std::vector<ChanceLevel> levels =
        prontoqa_chance({ example("True"), example("False"), example("False"), example("False") });
    REQUIRE(levels.size() == 1);
    CHECK(levels[0].share == 0.75);
    CHECK(is_prontoqa_question("Max is a lempus. True or false: Max is hot."));
    CHECK_FALSE(is_prontoqa_question("Is Max hot?"));
    CHECK(prontoqa_facets({ "x", "q", { "a", "b", "c" }, "True" }) == Facets{ { "depth", "2" }, { "answer", "True" } });
}
