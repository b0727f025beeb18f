// Right or wrong on any data: what follows the answer prefix, compared as a text, a number or a choice.
#include <doctest/doctest.h>

#include "task/answer_reader.h"
#include "text/normalize.h"

using namespace penelope;

namespace {

Example with_answer(const std::string & answer) {
    return { "x", "q", {}, answer };
}

bool right(const std::string & text, const std::string & gold, Match match = Match::exact,
           const std::string & prefix = "### ", const std::vector<std::string> & others = {}) {
    std::vector<Example> examples = { with_answer(gold) };
    for (const std::string & other : others) {
        examples.push_back(with_answer(other));
    }
    return AnswerReader(generic_task(), prefix, match, examples).is_correct(text, examples.front());
}

} // namespace

TEST_CASE("answers that differ anywhere are different answers") {
    CHECK(right("### C#", "C#"));
    CHECK_FALSE(right("### C#", "F#"));
    CHECK_FALSE(right("### 1,23", "12,3"));
    CHECK(right("### yes\nbecause A", "yes\nbecause A"));
    CHECK_FALSE(right("### yes\nbecause A", "yes\nbecause B"));
    CHECK_FALSE(right("### ", "x"));
    CHECK_FALSE(right("", "x"));
}

TEST_CASE("spaces around an answer and the form of its letters do not count") {
    CHECK(right("###  7 \n", "7"));
    CHECK(right("### caf\xc3\xa9", "cafe\xcc\x81")); // composed and decomposed
    CHECK_FALSE(right("### Yes", "yes"));
    CHECK(normalize_unicode("\xff") == "\xff"); // not UTF-8: as it is
}

TEST_CASE("the answer follows the prefix of the model, whatever that is") {
    CHECK(right("step one\nAnswer: 7", "7", Match::exact, "Answer: "));
    CHECK(right("Answer:7", "7", Match::exact, "Answer: "));
    CHECK(right("so Answer: 7", "7", Match::exact, "Answer: "));
    CHECK(right("Answer: see Answer: B", "see Answer: B", Match::exact, "Answer: ")); // the one that starts a line
    CHECK(right("7", "7", Match::exact, ""));
    CHECK(right("7", "7", Match::exact, "Answer: ")); // it left the prefix out
    CHECK(after_prefix("### 1\n### 2", "###") == " 2");
    const AnswerReader listops(find_task("listops"), "Answer: ", Match::exact, {});
    CHECK(listops.is_correct("[MIN 4 7] = 4\nAnswer: 4", with_answer("4")));
    CHECK_FALSE(listops.is_correct("[MIN 4 7] = 4\nAnswer: 7", with_answer("4")));
}

TEST_CASE("numbers in any spelling") {
    CHECK(canonical_number("1,200.50 km") == "1200.5");
    CHECK(canonical_number("about -0.50") == "-0.5");
    CHECK(canonical_number("= - 3") == "-3");
    CHECK(canonical_number("\xe2\x88\x92"
                           "4") == "-4");
    CHECK(canonical_number("item-3") == "3");
    CHECK(canonical_number("007") == "7");
    CHECK(canonical_number("-0") == "0");
    CHECK(canonical_number(".5") == "0.5");
    CHECK(canonical_number("1.5e3") == "1500");
    CHECK(canonical_number("25e-4") == "0.0025");
    CHECK(canonical_number("12345678901234567890.10") == "12345678901234567890.1");
    CHECK(canonical_number("1,23") == "1");
    CHECK(canonical_number("none") == "");
    CHECK(right("### $1,200", "1200", Match::number));
    CHECK_FALSE(right("### 1201", "1200", Match::number));
    CHECK_FALSE(right("### many", "none", Match::number)); // neither is a number
}

TEST_CASE("choices are those of the data") {
    CHECK(right("### B) Paris", "B", Match::choice, "### ", { "A", "C" }));
    CHECK(right("### (b).", "B", Match::choice, "### ", { "A" }));
    CHECK_FALSE(right("### Because", "B", Match::choice, "### ", { "A" }));
    CHECK(right("### New York, of course", "new york", Match::choice, "### ", { "New" }));
    CHECK_FALSE(right("### New York", "new", Match::choice, "### ", { "New York" }));
    CHECK_FALSE(right("### D", "B", Match::choice, "### ", { "A" }));
    CHECK(right("### **C#**, I think", "C#", Match::choice, "### ", { "C", "C++", "F#" }));
    CHECK_FALSE(right("### C++", "C#", Match::choice, "### ", { "C", "C++", "F#" }));
    CHECK_FALSE(right("### C#", "C", Match::choice, "### ", { "D" }));
    CHECK(right("### -", "-", Match::choice, "### ", { "+" }));
}

TEST_CASE("ways to compare by name") {
    CHECK(parse_match("") == Match::exact);
    CHECK(parse_match("choice") == Match::choice);
    CHECK_THROWS(parse_match("fuzzy"));
}
