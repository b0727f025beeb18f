// Data files: both formats in, JSON Lines out, and a clear error with file and line for everything that is wrong.
#include <doctest/doctest.h>

#include "base/error.h"
#include "support/errors.h"
#include "support/temp_dir.h"
#include "task/example.h"
#include "task/task.h"

#include <algorithm>

using namespace penelope;
using test::contains;

static const std::string good = R"({"id": "a", "question": "Why?", "steps": ["one", "two"], "answer": "so"})";

// The message of the Error that parsing gives; empty if it gives none.
static std::string complaint(const std::string & text, IdCheck ids = IdCheck::unique) {
    try {
        parse_examples(text, "data.jsonl", ids);
    } catch (const Error & error) {
        CHECK(error.kind == ErrorKind::format);
        CHECK_FALSE(error.hint.empty());
        return error.message();
    }
    return "";
}

TEST_CASE("JSON Lines") {
    const auto examples = parse_examples(
        good + "\r\n\n  \n" + R"({"question":"How?","steps":[],"answer":"7","extra":{"x":[1]}})", "dir/data.jsonl");
    REQUIRE(examples.size() == 2);
    CHECK(examples[0].id == "a");
    CHECK(examples[0].question == "Why?");
    CHECK(examples[0].steps == std::vector<std::string>{ "one", "two" });
    CHECK(examples[0].answer == "so");
    CHECK(examples[1].id == "data-1");
    CHECK(examples[1].steps.empty());
}

TEST_CASE("Coconut's arrays, with and without idx") {
    const auto examples = parse_examples("\xef\xbb\xbf ["
                                         R"({"question":"A","steps":["s"],"answer":"1","idx":7},
        {"question":"B","steps":["s"],"answer":"2","edges":[[0,1]]},
        {"id":12,"question":"C","steps":["s"],"answer":"2"}])",
                                         "prosqa_test.json");
    REQUIRE(examples.size() == 3);
    CHECK(examples[0].id == "prosqa_test-7");
    CHECK(examples[1].id == "prosqa_test-1");
    CHECK(examples[2].id == "12");
    CHECK(examples[1].question == "B");
}

TEST_CASE("a byte order mark does not disturb JSON Lines") {
    CHECK(parse_examples("\xef\xbb\xbf" + good, "x.jsonl").size() == 1);
}

TEST_CASE("tables as spreadsheets write them") {
    const auto examples =
        parse_examples("\xef\xbb\xbf"
                       "Question, Steps ,ANSWER,note\r\n\"Say \"\"C#\"\", please\",\"one, two\r\nthree\r\n\",C#,x\r\n"
                       ",,,\r\n\"\xc3\xa9?\",,1.50\r\n",
                       "data.csv");
    REQUIRE(examples.size() == 2);
    CHECK(examples[0].question == "Say \"C#\", please");
    CHECK(examples[0].steps == std::vector<std::string>{ "one, two", "three" });
    CHECK(examples[0].answer == "C#");
    CHECK(examples[1].question == "\xc3\xa9?");
    CHECK(examples[1].steps.empty());
    CHECK(examples[1].answer == "1.50");
}

TEST_CASE("written and read back, everything is the same") {
    const std::vector<Example> examples = {
        { "a", "Quote \" back\\slash \n tab\t", { "", "ünï", "\x01" }, "\xf0\x9f\x98\x80" }, { "b", "Q", {}, "A" }
    };
    const std::string text = examples_to_jsonl(examples);
    CHECK(std::count(text.begin(), text.end(), '\n') == 2);
    CHECK(text.substr(text.find('\n') + 1) == R"({"id":"b","question":"Q","steps":[],"answer":"A"})"
                                              "\n");
    const auto again = parse_examples(text, "x.jsonl");
    REQUIRE(again.size() == 2);
    for (size_t i = 0; i < 2; ++i) {
        CHECK(again[i].id == examples[i].id);
        CHECK(again[i].question == examples[i].question);
        CHECK(again[i].steps == examples[i].steps);
        CHECK(again[i].answer == examples[i].answer);
    }
}

TEST_CASE("what steps lead to: as the file says it, else as the steps end, then the answer") {
    const auto results = [](const std::string & line) {
        return step_results(generic_task(), parse_examples(line, "x.jsonl").front());
    };
    using Texts = std::vector<std::string>;
    CHECK(results(R"({"question":"Q","steps":["3 + 4 = 7", "Tom has 7 apples.",)"
                  R"( " 7 - 2 = five ", "", "so!"],"answer":"no"})") ==
          Texts{ "7", " apples", " five", "", " so", " no" });
    CHECK(results(R"({"question":"Q","steps":["it grows", "by 2"],"step_results":["bigger", 12],"answer":14})") ==
          Texts{ " bigger", "12", "14" });
    CHECK(results(R"({"question":"Q","answer":"14"})").empty());

    const std::string given = R"({"id":"a","question":"Q","steps":["s"],"step_results":["r"],"answer":"A"})";
    CHECK(examples_to_jsonl(parse_examples(given, "x.jsonl")) == given + "\n");
    CHECK(parse_examples("question,steps,step_results,answer\nQ,\"a\nb\",\"1\n2\",A\n", "x.csv").front().results ==
          Texts{ "1", "2" });
    CHECK(complaint(R"({"question":"Q","steps":["s","t"],"step_results":["r"],"answer":"A"})") ==
          "data.jsonl line 1: has 1 results of 2 steps");
    CHECK(complaint(R"({"question":"Q","steps":["s"],"step_results":[{}],"answer":"A"})") ==
          "data.jsonl line 1: result 1 must be a string, not object");
}

TEST_CASE("malformed lines are named") {
    const std::string message = complaint(good + "\n\n{\"question\": \"x\",\n");
    CHECK(contains(message, "data.jsonl line 3: column "));
    CHECK(contains(complaint(good + "\nnot json"), "data.jsonl line 2: "));
    CHECK(contains(complaint(good + good), "data.jsonl line 1: "));
    CHECK(contains(complaint(good + "\n[1]"), "data.jsonl line 2: an example must be an object, not array"));
    CHECK(contains(complaint("17"), "data.jsonl line 1: an example must be an object, not number"));
    CHECK(contains(complaint("{\"question\": \"\xff\"}"), "data.jsonl line 1: "));
    CHECK(contains(complaint(std::string("\0", 1)), "data.jsonl line 1: "));
    CHECK(contains(complaint(std::string(100000, '[')), "data.jsonl"));
    CHECK(contains(complaint("{\"a\":" + std::string(100000, '[')), "data.jsonl line 1: "));
}

TEST_CASE("malformed arrays are named") {
    CHECK(contains(complaint("[" + good + ",\n" + good.substr(0, 20)), "data.jsonl: line 2"));
    CHECK(contains(complaint("[" + good + ", 3]"), "data.jsonl item 2: an example must be an object, not number"));
    CHECK(contains(complaint("[]"), "data.jsonl: there are no examples in the array"));
    CHECK(contains(complaint(R"([{"question":"Q","steps":[],"answer":"A","idx":"x"}])"),
                   "data.jsonl item 1: \"idx\" must be an integer, not string"));
}

TEST_CASE("empty files") {
    CHECK(complaint("") == "data.jsonl: the file is empty");
    CHECK(complaint(" \n\t\r\n") == "data.jsonl: the file is empty");
    CHECK(complaint("\xef\xbb\xbf") == "data.jsonl: the file is empty");
}

TEST_CASE("missing, empty and wrong fields") {
    CHECK(complaint(R"({"steps":[],"answer":"A"})") == "data.jsonl line 1: \"question\" is missing");
    CHECK(complaint(R"({"question":"Q","answer":"A"})") == ""); // steps may be missing
    CHECK(complaint(R"({"question":"Q","steps":[]})") == "data.jsonl line 1: \"answer\" is missing");
    const Example numbers = parse_examples(R"({"question":1,"steps":[2.5],"answer":7})", "x").front();
    CHECK((numbers.question + " " + numbers.steps.front() + " " + numbers.answer) == "1 2.5 7");
    CHECK(complaint(R"({"question":"Q","steps":[],"answer":true})") ==
          "data.jsonl line 1: \"answer\" must be a string or a number, not boolean");
    CHECK(complaint(R"({"question":null,"steps":[],"answer":"7"})") ==
          "data.jsonl line 1: \"question\" must be a string or a number, not null");
    CHECK(complaint(R"({"question":"Q","steps":"s","answer":"7"})") ==
          "data.jsonl line 1: \"steps\" must be an array of strings, not string");
    CHECK(complaint(R"({"question":"Q","steps":["s",null],"answer":"7"})") ==
          "data.jsonl line 1: step 2 must be a string, not null");
    CHECK(complaint(R"({"question":" ","steps":[],"answer":"7"})") == "data.jsonl line 1: \"question\" is empty");
    CHECK(complaint(R"({"question":"Q","steps":[],"answer":""})") == "data.jsonl line 1: \"answer\" is empty");
    CHECK(complaint(R"({"id":"","question":"Q","steps":[],"answer":"A"})") == "data.jsonl line 1: \"id\" is empty");
    CHECK(complaint(R"({"id":[],"question":"Q","steps":[],"answer":"A"})") ==
          "data.jsonl line 1: \"id\" must be a string or a number, not array");
}

TEST_CASE("duplicate ids") {
    CHECK(complaint(good + "\n\n" + good) == "data.jsonl line 3: duplicate id 'a', first in data.jsonl line 1");
    CHECK(complaint("[" + good + "," + good + "]") ==
          "data.jsonl item 2: duplicate id 'a', first in data.jsonl item 1");
    CHECK(complaint(good + "\n" + good, IdCheck::none) == "");
}

TEST_CASE("compressed data is told apart") {
    CHECK(complaint("\x1f\x8b\x08 rest") == "data.jsonl: is compressed");
}

TEST_CASE("files") {
    const test::TempDir dir;
    CHECK(read_examples(dir.write("one.jsonl", good + "\n")).size() == 1);
    CHECK(read_examples(dir.write("two.json", "[" + good + "]"))[0].id == "a");
    const auto kind_of = [](const std::string & path) {
        try {
            read_examples(path);
        } catch (const Error & error) {
            CHECK(contains(error.message(), path));
            return std::string(error_kind_name(error.kind));
        }
        return std::string();
    };
    CHECK(kind_of(dir.file("none.jsonl")) == "not_found");
    CHECK(kind_of(dir.path().string()) == "usage");
    CHECK(kind_of(dir.write("empty.jsonl", "")) == "format");
}
