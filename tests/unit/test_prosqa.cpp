// ProsQA: the statistics of the graphs against those measured on the 800 published examples, every answer and path
// against a second reading of the text, separation, determinism.
#include <doctest/doctest.h>

#include "base/error.h"
#include "base/sha256.h"
#include "support/prosqa_checker.h"
#include "task/prosqa.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace penelope;

static const Dataset & sample_data() {
    static const Dataset data = [] {
        DatasetOptions options = find_task("prosqa").defaults;
        options.n_train        = 2000;
        return generate_prosqa(options);
    }();
    return data;
}

// Running means of named quantities.
class Means {
  public:
    void add(const std::string & name, double value) {
        sums_[name].first += value;
        sums_[name].second += 1;
    }
    double operator[](const std::string & name) const { return sums_.at(name).first / sums_.at(name).second; }

  private:
    std::map<std::string, std::pair<double, double>> sums_;
};

static bool near(double value, double published, double tolerance) {
    return std::abs(value - published) < tolerance;
}

// The published figures come from 800 examples, so they carry an error of their own: about .035 standard deviations of
// the quantity. The bounds are three to four of those, but for the last two.
TEST_CASE("graphs have the statistics of the published files") {
    Rng       rng(2024);
    Means     mean;
    int       least_nodes = 99;
    int       most_nodes  = 0;
    const int n_graphs    = 6000;
    for (int g = 0; g < n_graphs; ++g) {
        const ProsqaGraph graph = draw_prosqa_graph({ 3, 6 }, rng);
        const int         n     = static_cast<int>(graph.parents.size());
        least_nodes             = std::min(least_nodes, n);
        most_nodes              = std::max(most_nodes, n);
        double n_edges          = 0;
        double n_parentless     = 0;
        for (size_t i = 0; i < graph.parents.size(); ++i) {
            const size_t n_parents = graph.parents[i].size();
            n_edges += static_cast<double>(n_parents);
            n_parentless += n_parents == 0 ? 1 : 0;
            if (i >= 2) {
                for (int k = 0; k < 5; ++k) {
                    mean.add("in-degree " + std::to_string(k), n_parents == static_cast<size_t>(k) ? 1 : 0);
                }
                for (int label = 0; label < 4; ++label) {
                    mean.add("label " + std::to_string(label), graph.labels[i] == label ? 1 : 0);
                }
            }
        }
        const std::vector<int> distances = prosqa_distances(graph, graph.root);
        std::vector<double>    n_paths(graph.parents.size(), 0);
        n_paths[static_cast<size_t>(graph.root)] = 1;
        for (size_t i = 0; i < graph.parents.size(); ++i) {
            for (const int parent : graph.parents[i]) {
                const size_t p = static_cast<size_t>(parent);
                n_paths[i] += distances[p] >= 0 && distances[p] + 1 == distances[i] ? n_paths[p] : 0;
            }
        }
        const int length = distances[static_cast<size_t>(graph.target)];
        REQUIRE(static_cast<int>(graph.path.size()) == length + 1);
        REQUIRE(distances[static_cast<size_t>(graph.neg_target)] == -1);
        const int neg_depth = prosqa_distances(graph, 1 - graph.root)[static_cast<size_t>(graph.neg_target)];
        mean.add("nodes", n);
        mean.add("nodes squared", static_cast<double>(n) * n);
        mean.add("edges", n_edges);
        mean.add("edges squared", n_edges * n_edges);
        mean.add("parentless", n_parentless);
        mean.add("length", length);
        mean.add("paths", n_paths[static_cast<size_t>(graph.target)]);
        mean.add("root 1", graph.root);
        for (int k = 1; k <= 6; ++k) {
            mean.add("length " + std::to_string(k), length == k ? 1 : 0);
            mean.add("negative " + std::to_string(k), neg_depth == k ? 1 : 0);
        }
    }
    CHECK(least_nodes >= 10);
    CHECK(least_nodes <= 17);
    CHECK(most_nodes == 28);
    CHECK(near(mean["nodes"], 22.81, 0.25));
    CHECK(near(std::sqrt(mean["nodes squared"] - mean["nodes"] * mean["nodes"]), 1.98, 0.2));
    CHECK(near(mean["edges"], 36.00, 0.7));
    CHECK(near(std::sqrt(mean["edges squared"] - mean["edges"] * mean["edges"]), 5.75, 0.5));
    CHECK(near(mean["length"], 3.77, 0.09));
    CHECK(near(mean["length 3"], 0.41, 0.06));
    CHECK(near(mean["length 4"], 0.44, 0.06));
    CHECK(near(mean["length 5"], 0.13, 0.04));
    CHECK(near(mean["length 6"], 0.02, 0.02));
    CHECK(near(mean["parentless"], 2.56, 0.095));
    CHECK(near(mean["root 1"], 0.636, 0.06));
    CHECK(near(mean["label 0"], 0.034, 0.005));
    CHECK(near(mean["label 1"], 0.390, 0.014));
    CHECK(near(mean["label 2"], 0.517, 0.014));
    CHECK(near(mean["in-degree 0"], 0.027, 0.0045));
    CHECK(near(mean["in-degree 1"], 0.479, 0.015));
    CHECK(near(mean["in-degree 2"], 0.304, 0.013));
    CHECK(near(mean["in-degree 3"], 0.133, 0.01));
    CHECK(near(mean["in-degree 4"], 0.042, 0.006));
    CHECK(near(mean["negative 1"], 0.20, 0.05));
    CHECK(near(mean["negative 2"], 0.52, 0.06));
    CHECK(near(mean["negative 3"], 0.25, 0.05));
    CHECK(near(mean["negative 4"], 0.03, 0.025));
    // Here 10,000 graphs of this procedure differ a little: shortest paths to the target, nodes of both families.
    CHECK(near(mean["paths"], 1.59, 0.15));
    CHECK(near(mean["label 3"], 0.060, 0.015));
}

TEST_CASE("the path is uniform among the shortest ones, not step by step") {
    // 6 is reached through 4 (from 2 or 3) and through 5 (from 3 alone).
    ProsqaGraph graph = {};
    graph.parents     = { {}, {}, { 0 }, { 0 }, { 2, 3 }, { 3 }, { 4, 5 } };
    graph.root        = 0;
    graph.target      = 6;
    Rng                             rng(5);
    std::map<std::vector<int>, int> counts;
    for (int i = 0; i < 9000; ++i) {
        counts[draw_prosqa_path(graph, rng)]++;
    }
    REQUIRE(counts.size() == 3);
    for (const std::vector<int> & path : { std::vector<int>{ 0, 2, 4, 6 }, { 0, 3, 4, 6 }, { 0, 3, 5, 6 } }) {
        CHECK(std::abs(counts[path] - 3000) < 200);
    }
}

TEST_CASE("exactly one option follows, and the steps are a shortest path to it") {
    double right_first = 0;
    double characters  = 0;
    size_t n           = 0;
    size_t longest     = 0;
    for (const auto * split : { &sample_data().train, &sample_data().valid, &sample_data().test }) {
        for (const Example & example : *split) {
            REQUIRE(prosqa_checker::problem(example) == "");
            const prosqa_checker::Reading reading = prosqa_checker::read(example.question);
            REQUIRE(example.steps.size() >= 3);
            REQUIRE(example.steps.size() <= 6);
            right_first += example.answer == reading.asked + " is a " + reading.first + "." ? 1 : 0;
            characters += static_cast<double>(example.question.size());
            longest = std::max(longest, example.question.size());
            ++n;
        }
    }
    CHECK(n == 2800);
    CHECK(near(right_first / static_cast<double>(n), 0.5, 0.035));
    CHECK(near(characters / static_cast<double>(n), 930, 15));
    CHECK(longest < 1600);
}

TEST_CASE("no question is shared, ids are numbered") {
    std::set<std::string> questions;
    for (const auto * split : { &sample_data().train, &sample_data().valid, &sample_data().test }) {
        for (const Example & example : *split) {
            questions.insert(example.question);
        }
    }
    CHECK(questions.size() == 2800);
    CHECK(sample_data().valid[299].id == "prosqa-valid-299");
}

TEST_CASE("names are drawn uniformly from all") {
    std::map<std::string, int> asked;
    std::set<std::string>      concepts;
    for (const Example & example : sample_data().train) {
        const prosqa_checker::Reading reading = prosqa_checker::read(example.question);
        asked[reading.asked]++;
        for (const auto & [parent, children] : reading.children) {
            concepts.insert(children.begin(), children.end());
        }
    }
    CHECK(asked.size() == 17);
    CHECK(concepts.size() == 38);
    for (const auto & [name, n] : asked) {
        CHECK(std::abs(n - 2000 / 17.0) < 45); // over four standard deviations
    }
}

TEST_CASE("the data is the same on every machine and the test set does not depend on train") {
    CHECK(sha256_hex(examples_to_jsonl(sample_data().train)) ==
          "dbef83a4b1f0ac3fe45c495640f3af8542b33b8bcb7cb7483f4c17b43758611c");
    CHECK(sha256_hex(examples_to_jsonl(sample_data().valid)) ==
          "4e988d321c156abb65c6adfdaf08f9413059bf2a6f24a8587f02115af3f1b58c");
    CHECK(sha256_hex(examples_to_jsonl(sample_data().test)) ==
          "8a179e38c9a959bf1af873fe8234823ff6d6a78eccc80a1223f4f3ee793c2149");
    DatasetOptions options = find_task("prosqa").defaults;
    options.n_train        = 0;
    options.n_valid        = 10;
    CHECK(examples_to_jsonl(generate_prosqa(options).test) == examples_to_jsonl(sample_data().test));
    options.seed = 1;
    CHECK(examples_to_jsonl(generate_prosqa(options).test) != examples_to_jsonl(sample_data().test));
}

TEST_CASE("defaults, other depths, invalid requests") {
    const DatasetOptions defaults = find_task("prosqa").defaults;
    CHECK(defaults.n_train == 17886);
    CHECK(defaults.n_valid == 300);
    CHECK(defaults.n_test == 500);
    DatasetOptions options = defaults;
    options.n_train        = 50;
    options.n_valid        = 0;
    options.n_test         = 50;
    options.depth          = { 2, 2 };
    options.test_depth     = { 7, 8 };
    const Dataset data     = generate_prosqa(options);
    for (const Example & example : data.train) {
        CHECK(example.steps.size() == 2);
    }
    for (const Example & example : data.test) {
        CHECK(prosqa_checker::problem(example) == "");
        CHECK((example.steps.size() == 7 || example.steps.size() == 8));
    }
    const auto refused = [](const DatasetOptions & request) {
        try {
            generate_prosqa(request);
        } catch (const Error & error) {
            return error.kind == ErrorKind::usage;
        }
        return false;
    };
    options.test_depth = { 25, 26 };
    CHECK(refused(options));
    options.test_depth = { 0, 6 };
    CHECK(refused(options));
    options          = defaults;
    options.branch_p = 0.5;
    CHECK(refused(options));
    options           = defaults;
    options.max_steps = 3;
    CHECK(refused(options));
    options           = defaults;
    options.operators = { "MAX" };
    CHECK(refused(options));
}

TEST_CASE("chance, recognition, facets") {
    const std::vector<ChanceLevel> levels = prosqa_chance(sample_data().test);
    REQUIRE(levels.size() == 1);
    CHECK(levels[0].share == 0.5);
    CHECK(is_prosqa_question(sample_data().test[0].question));
    CHECK(is_prosqa_question("Tom is a lempus. Is Tom a lempus or impus?"));
    CHECK(is_prosqa_question("Is Tom a lempus or impus?"));
    CHECK_FALSE(is_prosqa_question("This Tom a lempus or impus?"));
    CHECK_FALSE(is_prosqa_question("Is Tom a lempus?"));
    CHECK_FALSE(is_prosqa_question(""));
    CHECK(prosqa_facets({ "x", "Is Tom a lempus or impus?", { "a", "b" }, "Tom is a impus." }) ==
          Facets{ { "depth", "2" }, { "option_order", "right second" } });
    CHECK(prosqa_facets({ "x", "Is Tom a lempus or impus?", {}, "Tom is a rorpus." }) ==
          Facets{ { "depth", "0" }, { "option_order", "unknown" } });
}
