// Thread: every answer and step against the edges of the question, balance, both surfaces, what is read from other
// texts.
#include <doctest/doctest.h>

#include "support/errors.h"
#include "task/thread.h"
#include "task/thread_surface.h"

#include <map>
#include <set>

using namespace penelope;
using penelope::test::contains;
using penelope::test::error_of;

namespace {

DatasetOptions small(const std::string & surface) {
    DatasetOptions options = find_task("thread").defaults;
    options.n_train        = 400;
    options.n_valid        = 80;
    options.n_test         = 160;
    options.surface        = surface;
    return options;
}

// The edge of a letters question, found in its text and nowhere else.
char successor(const std::string & question, char from) {
    size_t found = std::string::npos;
    for (size_t i = 0; i + 3 < question.size(); i += 3) {
        if (question[i] == from) {
            REQUIRE(found == std::string::npos);
            found = i;
        }
    }
    REQUIRE(found != std::string::npos);
    return question[found + 1];
}

} // namespace

TEST_CASE("the steps of a thread are edges of the question, one after the other, up to the end") {
    for (const Example & example : generate_thread(small("letters")).train) {
        CAPTURE(example.question);
        CHECK(example.question.size() == 27 * 3 + 2);
        char at = example.question.back();
        for (const std::string & step : example.steps) {
            REQUIRE(step.size() == 2);
            CHECK(step[0] == at);
            CHECK(step[1] == successor(example.question, at));
            at = step[1];
        }
        CHECK(example.answer == std::string(1, at));
        CHECK(successor(example.question, at) == at);
    }
}

TEST_CASE("depths are balanced, edges in any order, no question comes twice") {
    const Dataset            data = generate_thread(small("letters"));
    std::map<size_t, size_t> depths;
    std::set<std::string>    questions;
    size_t                   n_backwards = 0;
    for (const Example & example : data.test) {
        depths[example.steps.size()]++;
    }
    for (size_t depth = 1; depth <= 8; depth++) {
        CHECK(depths[depth] == 20);
    }
    for (const auto * split : { &data.train, &data.valid, &data.test }) {
        for (const Example & example : *split) {
            CHECK(questions.insert(example.question).second);
            if (example.steps.size() > 1) {
                n_backwards += example.question.find(example.steps[1]) < example.question.find(example.steps[0]);
            }
        }
    }
    CHECK(n_backwards > 200);
    CHECK(n_backwards < 360); // of 560 with two steps or more
}

TEST_CASE("a question in words says the same") {
    for (const Example & example : generate_thread(small("words")).valid) {
        const Thread                   thread = read_thread(example.question);
        const std::vector<std::string> path   = thread_path(thread);
        REQUIRE(path.size() == example.steps.size() + 1);
        CHECK(thread.edges.size() == 27);
        CHECK(path.back() == example.answer);
        for (size_t i = 0; i < example.steps.size(); i++) {
            CHECK(example.steps[i] == path[i] + " hands the key to " + path[i + 1] + ".");
            CHECK(contains(example.question, example.steps[i]));
        }
        CHECK(thread_results(example).front() == " " + path[1]);
    }
    const std::vector<std::string> & names = find_thread_surface("words")->names;
    CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
}

TEST_CASE("results: the node after each step, and the end stays") {
    const Example example{ "", "bb ab ca ?c", { "ca", "ab" }, "b" };
    CHECK(thread_results(example) == std::vector<std::string>{ "a", "b", "b" });
}

TEST_CASE("what is no thread is not read as one") {
    CHECK(is_thread_question("bb ab ?a"));
    CHECK(is_thread_question("Bob keeps the key. Ann hands the key to Bob. Ann has the key. Who has it at the end?"));
    for (const char * other : { "", "?a", "ab ?a", "ab ba ?a", "abc bb ?a", "ab bb a?", "Evaluate: [MAX 1 2]", "bb ab",
                                "Ann hands the key to Bob. Ann has the key. Who has it at the end?",
                                "Bob keeps the key. Who has it at the end?" }) {
        CAPTURE(other);
        CHECK_FALSE(is_thread_question(other));
    }
    // A path is never longer than there are edges, also when it runs in a circle.
    CHECK(thread_path(read_thread("ab bc ca ?a")).empty());
}

TEST_CASE("the answer is what stands alone on the last line") {
    CHECK(extract_end("b") == "b");
    CHECK(extract_end("ca\nab\nb") == "b");
    CHECK(extract_end("Ann hands the key to Bob.\nBob.\n") == "Bob");
    CHECK(extract_end("### Bob") == "Bob");
    CHECK(extract_end("Ann hands the key to Bob.") == "");
    CHECK(extract_end("") == "");
    CHECK(extract_end("7") == "");
}

TEST_CASE("guessing an end is right for one chain in so many") {
    DatasetOptions options = small("letters");
    options.n_test         = 2000;
    for (const int n_chains : { 2, 4 }) {
        options.n_chains    = n_chains;
        const auto   test   = generate_thread(options).test;
        const auto   levels = thread_chance(test);
        const Facets facets = thread_facets(test.front());
        CHECK(levels[0].share == doctest::Approx(1.0 / n_chains).epsilon(0.12));
        CHECK(levels[1].share == doctest::Approx(1.0 / n_chains));
        CHECK(facets[0].second == std::to_string(test.front().steps.size()));
        CHECK(facets[1].second == std::to_string(n_chains));
    }
}

TEST_CASE("training questions mix numbers of chains; test questions have all chains") {
    DatasetOptions options           = small("letters");
    options.n_train                  = 300;
    options.n_test                   = 50;
    options.n_chains                 = 3;
    const Dataset plain              = generate_thread(options);
    options.min_chains               = 1;
    const Dataset              mixed = generate_thread(options);
    std::map<std::string, int> counts;
    for (const Example & example : mixed.train) {
        counts[thread_facets(example)[1].second]++;
        CHECK(example.steps.size() == thread_path(read_thread(example.question)).size() - 1);
    }
    // Half of them have the fewest, the others any number: 200, 50 and 50.
    CHECK(counts.size() == 3);
    CHECK(counts["1"] > 170);
    CHECK(counts["2"] > 30);
    CHECK(counts["3"] > 30);
    REQUIRE(mixed.test.size() == plain.test.size());
    for (size_t i = 0; i < plain.test.size(); i++) {
        CHECK(mixed.test[i].question == plain.test[i].question);
    }
    options.min_chains = 4;
    CHECK(contains(error_of([&] { generate_thread(options); }).message(), "--min-chains 4: exceeds --chains 3"));
}

TEST_CASE("options of one task are refused by the others") {
    for (const Task & task : tasks()) {
        CAPTURE(std::string(task.name));
        DatasetOptions options = task.defaults;
        options.n_train        = 8;
        options.n_valid        = 0;
        options.n_test         = 0;
        options.n_chains       = 2;
        if (std::string(task.name) == "thread") {
            CHECK(task.generate(options).train.size() == 8);
            continue;
        }
        const Error error = error_of([&] { task.generate(options); });
        CHECK(error.kind == ErrorKind::usage);
        CHECK(error.message() == std::string("--chains is not an option of task ") + task.name);
        CHECK(error.hint == "it is an option of thread");
    }
}

TEST_CASE("too few names is an error") {
    DatasetOptions options = small("letters");
    options.n_chains       = 6;
    CHECK(contains(error_of([&] { generate_thread(options); }).message(), "54 node names"));
    options         = small("letters");
    options.surface = "verse";
    CHECK(contains(error_of([&] { generate_thread(options); }).message(), "--surface"));
}
