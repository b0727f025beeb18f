// Deep ListOps: every label and step against a second evaluator, exact quotas, separation of the splits, determinism,
// and what guessing gives.
#include <doctest/doctest.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "support/listops_checker.h"
#include "task/listops.h"

#include <array>
#include <cmath>
#include <ctime>
#include <map>
#include <set>

using namespace penelope;

static const std::string opening = "Evaluate: ";

static std::string expression_of(const Example & example) {
    REQUIRE(example.question.rfind(opening, 0) == 0);
    return example.question.substr(opening.size());
}

// The expression with one space before every argument and none elsewhere.
static std::string respelled(const std::string & expression) {
    std::string text;
    for (const char c : expression) {
        const bool starts_argument = c == '[' || (c >= '0' && c <= '9');
        if (c != ' ') {
            text += (starts_argument && !text.empty() ? " " : "") + std::string(1, c);
        }
    }
    return text;
}

static DatasetOptions small_options(size_t n, DepthRange depth) {
    DatasetOptions options = find_task("listops").defaults;
    options.n_train        = 0;
    options.n_valid        = 0;
    options.n_test         = n;
    options.depth          = depth;
    options.test_depth     = depth;
    return options;
}

static const Dataset & default_data() {
    static const Dataset data = generate_listops(find_task("listops").defaults);
    return data;
}

TEST_CASE("the second evaluator reads both spellings and known values") {
    CHECK(listops_checker::read("[MAX 2 9 [MIN 4 7 ] 0 ]").value == 9);
    CHECK(listops_checker::read("[MAX 2 [MIN 4 7] 0]").value == 4);
    CHECK(listops_checker::read("( ( ( ( ( [SM 6 ) 5 ) 9 ) 0 ) ] )").value == 0);
    CHECK(listops_checker::read("[MED 1 2 9 8]").value == 5);
    CHECK(listops_checker::read("[MED 1 2]").value == 1);
    CHECK(listops_checker::read("[MED 7 1 9]").value == 7);
    CHECK(listops_checker::read("[SM 9 9 [MED 0 5 ] ]").depth == 2);
    CHECK(listops_checker::read("7").value == 7);
    CHECK_THROWS(listops_checker::read("[MAX 1 2"));
}

TEST_CASE("the operators by hand") {
    CHECK(apply_listops(0, { 3, 9, 4 }) == 9);
    CHECK(apply_listops(1, { 3, 9, 4 }) == 3);
    CHECK(apply_listops(2, { 3, 9, 4 }) == 4);
    CHECK(apply_listops(2, { 9, 3, 4, 2 }) == 3);
    CHECK(apply_listops(3, { 9, 9, 4 }) == 2);
    CHECK(apply_listops(2, { 5 }) == 5);
}

TEST_CASE("the default set has the paper's sizes and exact quotas") {
    const Dataset & data = default_data();
    CHECK(data.train.size() == 4800);
    CHECK(data.valid.size() == 800);
    CHECK(data.test.size() == 1600);
    const auto check_cells = [](const std::vector<Example> & examples, int last_depth,
                                const std::map<int, int> & per_cell) {
        std::map<std::pair<int, std::string>, int> cells;
        for (const Example & example : examples) {
            cells[{ listops_checker::read(expression_of(example)).depth, example.answer }]++;
        }
        CHECK(cells.size() == static_cast<size_t>(last_depth) * 10);
        for (const auto & [cell, n] : cells) {
            CHECK(n == per_cell.upper_bound(cell.first)->second);
        }
    };
    check_cells(data.train, 8, { { 9, 60 } });
    check_cells(data.valid, 8, { { 9, 10 } });
    check_cells(data.test, 12, { { 9, 10 }, { 13, 20 } });
}

TEST_CASE("every label and every step agrees with the second evaluator, in the exact spelling") {
    for (const auto * split : { &default_data().train, &default_data().valid, &default_data().test }) {
        for (const Example & example : *split) {
            const listops_checker::Reading reading = listops_checker::read(expression_of(example));
            REQUIRE(expression_of(example) == respelled(expression_of(example)));
            REQUIRE(std::to_string(reading.value) == example.answer);
            REQUIRE(reading.n_operators == reading.depth); // a spine
            REQUIRE(reading.min_args >= 2);
            REQUIRE(reading.max_args <= 4);
            const size_t n_kept = std::min<size_t>(static_cast<size_t>(reading.depth), 6);
            REQUIRE(example.steps == std::vector<std::string>(reading.transitions.begin(),
                                                              reading.transitions.begin() + static_cast<long>(n_kept)));
        }
    }
}

TEST_CASE("a short expression as text") {
    for (const Example & example : default_data().test) {
        if (example.steps.size() == 2) {
            const std::string inner = example.steps[0].substr(0, example.steps[0].find(" ="));
            std::string       outer = expression_of(example);
            const size_t      place = outer.find(inner);
            REQUIRE(place != std::string::npos);
            outer.replace(place, inner.size(), example.steps[0].substr(example.steps[0].size() - 1));
            CHECK(outer + " = " + example.answer == example.steps[1]);
        }
    }
}

TEST_CASE("ids are numbered and no question is shared, whatever its spacing") {
    std::set<std::string> questions;
    std::set<std::string> ids;
    for (const auto * split : { &default_data().train, &default_data().valid, &default_data().test }) {
        for (const Example & example : *split) {
            questions.insert(respelled(expression_of(example)));
            ids.insert(example.id);
        }
    }
    CHECK(questions.size() == 7200);
    CHECK(ids.size() == 7200);
    CHECK(ids.count("listops-train-4799") == 1);
    CHECK(ids.count("listops-test-0") == 1);
}

TEST_CASE("the default set is the same on every machine") {
    CHECK(sha256_hex(examples_to_jsonl(default_data().train)) ==
          "ef4f93eb238b15ac6e978dedbd30d51c7ebddc8aea346db7c97297827ef63c70");
    CHECK(sha256_hex(examples_to_jsonl(default_data().valid)) ==
          "eb99c3ae9008eb45c07217d7057701a1e9a86e0d7a39c8efb97554d59ab09ae2");
    CHECK(sha256_hex(examples_to_jsonl(default_data().test)) ==
          "9e1e938098d63af317fc5e1274caec036a805a5f7a29de5a9b93a533d01bb552");
}

TEST_CASE("another seed gives other questions; the test set does not depend on the size of train") {
    DatasetOptions options = find_task("listops").defaults;
    options.n_train        = 160;
    options.n_valid        = 0;
    const Dataset smaller  = generate_listops(options);
    CHECK(examples_to_jsonl(smaller.test) == examples_to_jsonl(default_data().test));
    CHECK(smaller.valid.empty());
    options.seed = 1;
    CHECK(examples_to_jsonl(generate_listops(options).test) != examples_to_jsonl(smaller.test));
}

TEST_CASE("sizes that do not divide are spread evenly") {
    for (const size_t n : { size_t{ 1 }, size_t{ 7 }, size_t{ 83 }, size_t{ 4801 } }) {
        std::map<int, size_t> depths;
        std::map<int, size_t> digits;
        size_t                total = 0;
        for (const ListopsCell & cell : listops_cells(n, { 1, 8 }, { 1, 8 })) {
            depths[cell.depth] += cell.n;
            digits[cell.digit] += cell.n;
            total += cell.n;
        }
        CHECK(total == n);
        for (const auto * counts : { &depths, &digits }) {
            size_t least = n;
            size_t most  = 0;
            for (const auto & [key, count] : *counts) {
                least = std::min(least, count);
                most  = std::max(most, count);
            }
            CHECK(most - least <= 1);
        }
    }
}

TEST_CASE("depths beyond the known ones take half of the examples") {
    std::map<int, size_t> depths;
    for (const ListopsCell & cell : listops_cells(101, { 3, 6 }, { 1, 4 })) {
        depths[cell.depth] += cell.n;
    }
    CHECK(depths == std::map<int, size_t>{ { 3, 26 }, { 4, 25 }, { 5, 25 }, { 6, 25 } });
    depths.clear();
    for (const ListopsCell & cell : listops_cells(10, { 5, 6 }, { 1, 4 })) {
        depths[cell.depth] += cell.n;
    }
    CHECK(depths == std::map<int, size_t>{ { 5, 5 }, { 6, 5 } });
}

TEST_CASE("other depth ranges, branches and trace lengths") {
    DatasetOptions options = small_options(400, { 3, 5 });
    options.branch_p       = 0.4;
    options.max_steps      = -1;
    int n_branched         = 0;
    for (const Example & example : generate_listops(options).test) {
        const listops_checker::Reading reading = listops_checker::read(expression_of(example));
        CHECK(reading.depth >= 3);
        CHECK(reading.depth <= 5);
        CHECK(std::to_string(reading.value) == example.answer);
        CHECK(example.steps == reading.transitions);
        n_branched += reading.max_nested > 1 ? 1 : 0;
    }
    CHECK(n_branched > 200);
    options.max_steps = 0;
    for (const Example & example : generate_listops(options).test) {
        CHECK(example.steps.empty());
    }
}

TEST_CASE("excluded questions do not come up") {
    DatasetOptions options = small_options(40, { 1, 1 });
    const Dataset  first   = generate_listops(options);
    for (const Example & example : first.test) {
        options.excluded.insert(sha256_hex(find_task("listops").normalize(example.question)));
    }
    std::set<std::string> questions;
    for (const auto & examples : { first.test, generate_listops(options).test }) {
        for (const Example & example : examples) {
            questions.insert(example.question);
        }
    }
    CHECK(questions.size() == 80);
}

TEST_CASE("impossible requests are refused") {
    const auto refused = [](DatasetOptions options) {
        try {
            generate_listops(options);
        } catch (const Error & error) {
            return error.kind == ErrorKind::usage;
        }
        return false;
    };
    CHECK(refused(small_options(10, { 0, 3 })));
    CHECK(refused(small_options(10, { 4, 3 })));
    CHECK(refused(small_options(10, { 1, 1000 })));
    CHECK(refused(small_options(0, { 1, 3 })));
    CHECK(refused(small_options(SIZE_MAX, { 1, 3 })));
    CHECK(refused(small_options(44401, { 1, 1 }))); // there are 44,400 expressions of depth 1
    DatasetOptions options = small_options(10, { 1, 3 });
    options.branch_p       = 1.5;
    CHECK(refused(options));
    options.branch_p = std::nan("");
    CHECK(refused(options));
    options           = small_options(10, { 1, 3 });
    options.max_steps = -2;
    CHECK(refused(options));
    options           = small_options(10, { 1, 3 });
    options.operators = { "MAX", "SUM" };
    CHECK(refused(options));
}

TEST_CASE("the operators can be chosen") {
    DatasetOptions options     = small_options(200, { 1, 3 });
    options.operators          = { "MIN", "MED" };
    const Dataset         data = generate_listops(options);
    std::set<std::string> seen;
    for (const Example & example : data.test) {
        for (const char * name : listops_operators) {
            if (example.question.find(name) != std::string::npos) {
                seen.insert(name);
            }
        }
    }
    CHECK(seen == std::set<std::string>{ "MED", "MIN" });
}

TEST_CASE("guessing") {
    const std::vector<ChanceLevel> levels = listops_chance(default_data().test);
    REQUIRE(levels.size() == 3);
    CHECK(levels[0].share > 0.47); // the outermost operator with its own digits
    CHECK(levels[0].share < 0.55);
    CHECK(levels[1].share > 0.18); // the outermost operator
    CHECK(levels[1].share < 0.25);
    CHECK(levels[2].share == doctest::Approx(0.1)); // digits are balanced

    const auto one = [](const char * question, const char * answer) {
        return listops_chance({ { "x", question, {}, answer } })[0].share;
    };
    CHECK(one("Evaluate: [MAX 3 [MIN 4 7] 8]", "8") == 1.0);
    CHECK(one("Evaluate: [MAX 3 [MIN 4 7] 8]", "9") == 0.0);
    CHECK(one("Evaluate: [MAX 2 9 [MIN 4 7 ] 0 ]", "9") == 1.0);
    CHECK(one("Evaluate: [MIN [SM 4 7] [SM 1 2] [SM 3 3] [SM 9 9]]", "0") == 1.0);
    CHECK(one("Evaluate: [SM 4 7]", "1") == 1.0);
    CHECK(one("Evaluate: [ADD 4 7]", "1") == 0.0);
    CHECK(one("Evaluate: [MAX]", "0") == 0.0);
    CHECK(one("What?", "0") == 0.0);
}

TEST_CASE("a guess at any number of digits is what all of them give") {
    // The definition: every hidden argument any digit, the most frequent result, the smallest of several.
    const auto defined = [](size_t op, const std::vector<int> & digits, int n_hidden) {
        std::array<int, 10> counts = {};
        for (int number = 0; number < int(std::pow(10, n_hidden)); number++) {
            std::vector<int> values = digits;
            for (int i = 0, rest = number; i < n_hidden; i++, rest /= 10) {
                values.push_back(rest % 10);
            }
            counts[size_t(apply_listops(op, values))]++;
        }
        return std::to_string(std::max_element(counts.begin(), counts.end()) - counts.begin());
    };
    Rng rng(3, 0);
    for (size_t op = 0; op < listops_operators.size(); op++) {
        for (int round = 0; round < 60; round++) {
            const int        n_hidden = round % 3;
            std::vector<int> digits;
            std::string      question = std::string("Evaluate: [") + listops_operators[op];
            for (int i = n_hidden == 0 ? 1 : 0; i < 1 + round / 3; i++) {
                digits.push_back(int(rng.uniform() * 10));
                question += " " + std::to_string(digits.back());
            }
            for (int i = 0; i < n_hidden; i++) {
                question += " [MAX 1 2]";
            }
            if (!digits.empty() || n_hidden > 0) {
                CHECK_MESSAGE(listops_baseline_answer(question + "]") == defined(op, digits, n_hidden), question);
            }
        }
    }
    std::string long_one = "Evaluate: [MED [MAX 1 2] [MAX 1 2] [MAX 1 2] [MAX 1 2]";
    for (int i = 0; i < 100000; i++) {
        long_one += " 7";
    }
    const std::clock_t begin = std::clock();
    CHECK(listops_baseline_answer(long_one + "]") == "7");
    CHECK(double(std::clock() - begin) / CLOCKS_PER_SEC < 1);
}

TEST_CASE("questions are recognized by their shape") {
    CHECK(is_listops_question("Evaluate: [MAX 3 [MIN 4 7] 8]"));
    CHECK(is_listops_question("  evaluate:  [ MAX 3 8 ]") == false);
    CHECK(is_listops_question("Evaluate: [MAX [MIN 4 7] 8]"));
    CHECK_FALSE(is_listops_question("Evaluate: 7"));
    CHECK_FALSE(is_listops_question("True or false: Max is hot."));
    CHECK_FALSE(is_listops_question(""));
}

TEST_CASE("facets for the audit") {
    const Facets facets = listops_facets({ "x", "Evaluate: [MAX 3 [MIN 4 [SM 1 2]] 8]", { "a", "b" }, "8" });
    CHECK(facets == Facets{ { "depth", "3" }, { "digit", "8" }, { "operator", "MAX" }, { "steps", "2" } });
}
