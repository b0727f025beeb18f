// Answers read out of generated text, one rule a task, and the registry of tasks.
#include <doctest/doctest.h>

#include "base/error.h"
#include "support/errors.h"
#include "task/answer_reader.h"
#include "task/choose_task.h"
#include "task/extract.h"
#include "task/task.h"

using namespace penelope;
using penelope::test::contains;
using penelope::test::error_of;

TEST_CASE("the answer part") {
    CHECK(answer_part("[MIN 4 7] = 4\n### 4") == "4");
    CHECK(answer_part("### 4\n### 5") == "5");
    CHECK(answer_part("The answer is: 4\nThe answer is: 5") == "5");
    CHECK(answer_part("The answer is: 4 # 6") == "6");
    CHECK(answer_part("  4  \nmore") == "4");
    CHECK(answer_part("### 1,234") == "1234");
    CHECK(answer_part("###") == "");
    CHECK(answer_part("") == "");
    CHECK(answer_part("### \n5") == ""); // what comes after the line is not the answer
}

TEST_CASE("Deep ListOps: a single digit") {
    CHECK(extract_digit("[MIN 4 7] = 4\n[MAX 3 4] = 4\n### 4") == "4");
    CHECK(extract_digit("### 4") == "4");
    CHECK(extract_digit("#4.") == "4");
    CHECK(extract_digit(" 7") == "7");
    CHECK(extract_digit("The answer is: 0") == "0");
    CHECK(extract_digit("it is 3 or 12") == "3");
    CHECK(extract_digit("### 12") == "");
    CHECK(extract_digit("### 12 3") == "");
    CHECK(extract_digit("### 1,2") == ""); // commas are deleted first
    CHECK(extract_digit("### none") == "");
    CHECK(extract_digit("") == "");
    CHECK(extract_digit("[MIN 4 7] = 4") == "4"); // without a marker, the first run of the first line
    CHECK(extract_digit("### \xd9\xa4") == "");   // a digit of another script
}

TEST_CASE("PrOntoQA: the first whole word True or False") {
    CHECK(extract_truth("Max is hot.\n### True") == "True");
    CHECK(extract_truth("### False.") == "False");
    CHECK(extract_truth("### not True but False") == "True");
    CHECK(extract_truth("The answer is: False") == "False");
    CHECK(extract_truth("### Truely False") == "False");
    CHECK(extract_truth("### true") == "");
    CHECK(extract_truth("### TrueFalse") == "");
    CHECK(extract_truth("### True_1") == "");
    CHECK(extract_truth("### Tru") == "");
    CHECK(extract_truth("") == "");
}

TEST_CASE("ProsQA: the whole sentence") {
    CHECK(extract_membership("Every a is a b.\n### Tom is a lempus.") == "Tom is a lempus.");
    CHECK(extract_membership("### Tom is a lempus") == "Tom is a lempus.");
    CHECK(extract_membership("Tom is a lempus.\nTom") == "Tom is a lempus.");
    CHECK(extract_membership("### Tom  is a  lempus .") == "Tom is a lempus.");
    CHECK(extract_membership("The answer is: Tom is a lempus.") == "Tom is a lempus.");
    CHECK(extract_membership("### tom is a lempus.") == "");
    CHECK(extract_membership("### Tom is an impus.") == "");
    CHECK(extract_membership("### Tom is a lempus. Tom is a dumpus.") == "");
    CHECK(extract_membership("### Tom is a Lempus.") == "");
    CHECK(extract_membership("### Tom is a") == "");
    CHECK(extract_membership("### Every tom is a lempus.") == "");
    CHECK(extract_membership("### Tom is a lempus..") == "");
    CHECK(extract_membership("") == "");
}

TEST_CASE("gold answers of all tasks are read, bare and in both layouts") {
    for (const Task & task : tasks()) {
        DatasetOptions options = task.defaults;
        options.n_train        = 0;
        options.n_valid        = 0;
        options.n_test         = 200;
        for (const Example & example : task.generate(options).test) {
            REQUIRE(task.extract(example.answer) == example.answer);
            REQUIRE(task.extract("### " + example.answer) == example.answer);
            if (*task.answer_prefix != '\0') { // without one the answer stands alone on its line
                REQUIRE(task.extract("The answer is: " + example.answer + "\n") == example.answer);
            }
            REQUIRE(
                AnswerReader(task, "### ", Match::exact, {}).is_correct("some step\n### " + example.answer, example));
            REQUIRE(task.recognizes(example.question));
        }
    }
}

TEST_CASE("an answer that is not read is wrong, even when gold is not read either") {
    const AnswerReader reader(find_task("listops"), "### ", Match::exact, {});
    CHECK(reader.is_correct("### 4", { "x", "q", {}, "4" }));
    CHECK_FALSE(reader.is_correct("### 5", { "x", "q", {}, "4" }));
    CHECK_FALSE(reader.is_correct("### none", { "x", "q", {}, "none" }));
}

TEST_CASE("the registry") {
    CHECK(tasks().size() == 4);
    CHECK(std::string(find_task("prosqa").name) == "prosqa");
    try {
        find_task("sudoku");
        FAIL("an unknown task was found");
    } catch (const Error & error) {
        CHECK(error.kind == ErrorKind::usage);
        CHECK(error.message() == "unknown task: 'sudoku'");
        CHECK(error.hint == "known tasks: generic, listops, prosqa, prontoqa, thread");
    }
}

TEST_CASE("a set is recognized only if all of it has one shape") {
    const Example a = { "a", "Evaluate: [MAX 1 2]", {}, "2" };
    const Example b = { "b", "Max is a lempus. True or false: Max is hot.", {}, "True" };
    const Example c = { "c", "What is it?", {}, "it" };
    REQUIRE(recognize_task({ a }) != nullptr);
    CHECK(recognize_task({ a })->name == std::string("listops"));
    CHECK(recognize_task({ b, b })->name == std::string("prontoqa"));
    CHECK(recognize_task({ a, b }) == nullptr);
    CHECK(recognize_task({ c }) == nullptr);
    CHECK(recognize_task({ { "d", a.question, {}, "C#" } }) == nullptr); // not an answer of that task
    CHECK(std::string(find_task("generic").name) == "generic");
    CHECK(recognize_task({}) == nullptr);
}

TEST_CASE("data of one's own that looks like a built-in task is not taken for one") {
    const std::vector<Example> own = {
        { "a", "True or false: Paris is big.", {}, "True" },
        { "b", "Rome is old. Oslo is cold. True or false: Oslo is warm.", {}, "False" },
        { "c",
          "Max is a lempus. Rome is old. True or false: Max is hot.",
          {},
          "False" }, // one sentence of another kind
        { "d", "Max is a lempus. True or false: it will rain in Rome tomorrow.", {}, "False" },
        { "e", "Is Tom a cat or dog?", {}, "Tom is a cat." },
        { "f", "Every lempus is a cat. Is Tom a lempus or dog?", {}, "Tom is a dog." },
        { "g", "Evaluate: [MAX 12 7]", {}, "7" },
        { "h", "Evaluate: [MAX 3 7] and say why", {}, "7" },
        { "i", "Evaluate: [MAX 3 7", {}, "7" },
        { "j", "Evaluate: [MAX 3 7]] 2", {}, "7" },
        { "k", "Evaluate: [SUM 3 4]", {}, "7" },
    };
    for (const Example & example : own) {
        CAPTURE(example.question);
        CHECK(recognize_task({ example }) == nullptr);
        CHECK(choose_task("", "", { example }).task == &generic_task());
    }
}

TEST_CASE("what is said decides on the task, else the marks of the questions, and the reason is given") {
    const std::vector<Example> listops = { { "a", "Evaluate: [MAX 1 2]", {}, "2" } };
    CHECK(choose_task("", "", listops).task->name == std::string("listops"));
    CHECK(contains(task_line(choose_task("", "", listops)), "task listops: every question is an expression"));
    CHECK(contains(task_line(choose_task("", "", listops)), "--task generic"));
    CHECK(task_line(choose_task("generic", "", listops)) == "task generic: given by --task");
    CHECK(task_line(choose_task("prontoqa", "", listops)) == "task prontoqa: given by --task");
    CHECK(choose_task("", "number", listops).task == &generic_task());
    CHECK(choose_task("generic", "number", listops).task == &generic_task());
    CHECK(task_line(choose_task("", "", { { "a", "What?", {}, "it" } })) ==
          "task generic: the data is that of no built-in task");
    CHECK(error_of([&] { choose_task("listops", "number", listops); }).kind == ErrorKind::usage);
    CHECK(error_of([&] { choose_task("sudoku", "", listops); }).kind == ErrorKind::usage);
}
