#include "task/prosqa.h"

#include "base/error.h"
#include "task/question.h"
#include "task/split.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace penelope {

namespace {

constexpr int        n_nodes         = 28;
constexpr DepthRange possible_depths = { 1, n_nodes - 2 };
constexpr int        max_graphs      = 20'000; // graphs drawn for one example before we give up

constexpr double mean_parents    = 1.5;
constexpr double first_family_p  = 0.35; // parents from node 0's family only
constexpr double second_family_p = 0.80; // up to here: from node 1's family only; beyond: from all nodes

constexpr std::array<const char *, 17> entities = { "Alex",    "Bob",  "Carol",  "Davis",  "Eva",   "Fae",
                                                    "Gabriel", "Jack", "Max",    "Oliver", "Polly", "Rex",
                                                    "Sally",   "Sam",  "Stella", "Tom",    "Wren" };

constexpr std::array<const char *, 38> concepts = {
    "bompus",  "boompus", "brimpus", "chorpus",  "dumpus",  "felpus",  "fompus",  "gerpus", "gorpus", "grimpus",
    "gwompus", "hilpus",  "impus",   "jelpus",   "jompus",  "kerpus",  "lempus",  "lorpus", "numpus", "quimpus",
    "rempus",  "rompus",  "rorpus",  "scrompus", "shumpus", "sterpus", "storpus", "terpus", "timpus", "tumpus",
    "vumpus",  "worpus",  "wumpus",  "yerpus",   "yimpus",  "yumpus",  "zhorpus", "zumpus",
};

// Parents and labels of all n_nodes nodes, isolated ones included.
ProsqaGraph draw_families(Rng & rng) {
    ProsqaGraph graph;
    graph.parents.resize(2);
    graph.labels = { 1, 2 };
    std::vector<int> depth(2, 0); // shortest distance from a node without parents
    for (int node = 2; node < n_nodes; ++node) {
        const int           n_wanted = rng.poisson(mean_parents);
        const double        r        = rng.uniform();
        const int           family   = r <= first_family_p ? 1 : r <= second_family_p ? 2 : 0;
        std::vector<int>    candidates;
        std::vector<double> weights;
        for (int other = 0; other < node; ++other) {
            const size_t i = static_cast<size_t>(other);
            if (family == 0 || graph.labels[i] == family) {
                candidates.push_back(other);
                weights.push_back(1.5 * depth[i] + 1.0);
            }
        }
        std::vector<int> parents;
        int              label     = 0;
        int              own_depth = 0;
        for (const size_t pick :
             rng.choose_weighted(weights, std::min(static_cast<size_t>(n_wanted), candidates.size()))) {
            const int    parent = candidates[pick];
            const size_t i      = static_cast<size_t>(parent);
            own_depth           = parents.empty() ? depth[i] + 1 : std::min(own_depth, depth[i] + 1);
            label |= graph.labels[i];
            parents.push_back(parent);
        }
        graph.parents.push_back(std::move(parents));
        graph.labels.push_back(label);
        depth.push_back(own_depth);
    }
    return graph;
}

std::vector<bool> nodes_with_children(const ProsqaGraph & graph) {
    std::vector<bool> has_children(graph.parents.size(), false);
    for (const std::vector<int> & parents : graph.parents) {
        for (const int parent : parents) {
            has_children[static_cast<size_t>(parent)] = true;
        }
    }
    return has_children;
}

void drop_isolated_nodes(ProsqaGraph & graph) {
    const std::vector<bool> has_children = nodes_with_children(graph);
    std::vector<int>        number(graph.parents.size(), -1);
    ProsqaGraph             kept = {};
    for (size_t i = 0; i < graph.parents.size(); ++i) {
        if (graph.parents[i].empty() && !has_children[i]) {
            continue;
        }
        number[i] = static_cast<int>(kept.parents.size());
        std::vector<int> parents;
        for (const int parent : graph.parents[i]) {
            parents.push_back(number[static_cast<size_t>(parent)]);
        }
        kept.parents.push_back(std::move(parents));
        kept.labels.push_back(graph.labels[i]);
    }
    graph = std::move(kept);
}

int draw_one(const std::vector<int> & items, Rng & rng) {
    return items[rng.below(items.size())];
}

// Chooses root, target and neg_target; false if the graph has no target within the range.
bool draw_question(ProsqaGraph & graph, const DepthRange & depth, Rng & rng) {
    const std::vector<bool> has_children = nodes_with_children(graph);
    std::vector<int>        leaves[2];
    std::vector<int>        deepest;
    int                     greatest = 0;
    for (int head = 0; head < 2; ++head) {
        const std::vector<int> distances = prosqa_distances(graph, head);
        for (size_t i = 2; i < graph.labels.size(); ++i) {
            if (has_children[i] || graph.labels[i] != head + 1) {
                continue;
            }
            leaves[head].push_back(static_cast<int>(i));
            if (distances[i] > greatest) {
                greatest = distances[i];
                deepest.clear();
            }
            if (distances[i] == greatest) {
                deepest.push_back(static_cast<int>(i));
            }
        }
    }
    if (leaves[0].empty() || leaves[1].empty() || greatest < depth.first || greatest > depth.last) {
        return false;
    }
    graph.target     = draw_one(deepest, rng);
    graph.root       = graph.labels[static_cast<size_t>(graph.target)] - 1;
    graph.neg_target = draw_one(leaves[1 - graph.root], rng);
    return true;
}

Example draw_example(const SplitRequest & request, Rng & rng) {
    const ProsqaGraph graph = draw_prosqa_graph(request.depth, rng);
    return draw_prosqa_text(graph, rng);
}

// The words of `Is Tom a lempus or scrompus?` at the end of a question, without the question mark; empty if it is none.
std::vector<std::string> final_question(const std::string & question) {
    const std::string        text  = trim(question);
    const size_t             start = text.rfind("Is ");
    std::vector<std::string> words;
    if (start == std::string::npos || (start > 0 && text[start - 1] != ' ') || text.back() != '?') {
        return words;
    }
    std::istringstream stream(text.substr(start, text.size() - 1 - start));
    for (std::string word; stream >> word;) {
        words.push_back(word);
    }
    const bool fits = words.size() == 6 && words[2] == "a" && words[4] == "or";
    return fits ? words : std::vector<std::string>();
}

} // namespace

std::vector<int> prosqa_distances(const ProsqaGraph & graph, int from) {
    std::vector<int> distances(graph.parents.size(), -1);
    distances[static_cast<size_t>(from)] = 0;
    for (size_t i = static_cast<size_t>(from) + 1; i < graph.parents.size(); ++i) {
        for (const int parent : graph.parents[i]) {
            const int distance = distances[static_cast<size_t>(parent)];
            if (distance >= 0 && (distances[i] < 0 || distance + 1 < distances[i])) {
                distances[i] = distance + 1;
            }
        }
    }
    return distances;
}

std::vector<int> draw_prosqa_path(const ProsqaGraph & graph, Rng & rng) {
    const std::vector<int> distances = prosqa_distances(graph, graph.root);
    std::vector<uint64_t>  n_paths(graph.parents.size(), 0);
    const auto             precedes = [&](int parent, size_t node) {
        const int distance = distances[static_cast<size_t>(parent)];
        return distance >= 0 && distance + 1 == distances[node];
    };
    n_paths[static_cast<size_t>(graph.root)] = 1;
    for (size_t i = 0; i < graph.parents.size(); ++i) {
        for (const int parent : graph.parents[i]) {
            n_paths[i] += precedes(parent, i) ? n_paths[static_cast<size_t>(parent)] : 0;
        }
    }
    // Back from the target, to each parent in proportion to the paths that reach it.
    std::vector<int> path = { graph.target };
    while (path.back() != graph.root) {
        const size_t node = static_cast<size_t>(path.back());
        uint64_t     pick = rng.below(n_paths[node]);
        for (const int parent : graph.parents[node]) {
            const uint64_t n = precedes(parent, node) ? n_paths[static_cast<size_t>(parent)] : 0;
            if (pick < n) {
                path.push_back(parent);
                break;
            }
            pick -= n;
        }
    }
    std::reverse(path.begin(), path.end());
    return path;
}

ProsqaGraph draw_prosqa_graph(const DepthRange & depth, Rng & rng) {
    for (int i = 0; i < max_graphs; ++i) {
        ProsqaGraph graph = draw_families(rng);
        drop_isolated_nodes(graph);
        const auto n_parentless = std::count_if(graph.parents.begin(), graph.parents.end(),
                                                [](const std::vector<int> & parents) { return parents.empty(); });
        // A head without descendants is itself dropped; the other nodes then have no second family to ask about.
        const bool both_heads = graph.labels.size() > 2 && graph.labels[0] == 1 && graph.labels[1] == 2;
        if (both_heads && static_cast<size_t>(n_parentless) <= entities.size() && draw_question(graph, depth, rng)) {
            graph.path = draw_prosqa_path(graph, rng);
            return graph;
        }
    }
    throw Error(ErrorKind::usage,
                "prosqa: no graph with a shortest path of " + std::to_string(depth.first) + " to " +
                    std::to_string(depth.last) + " hops found",
                "the published data has 3 to 6 hops");
}

Example draw_prosqa_text(const ProsqaGraph & graph, Rng & rng) {
    const std::vector<size_t> entity_order  = rng.choose(entities.size(), entities.size());
    const std::vector<size_t> concept_order = rng.choose(concepts.size(), concepts.size());
    std::vector<std::string>  names;
    size_t                    n_entities = 0;
    for (const std::vector<int> & parents : graph.parents) {
        const size_t n_concepts = names.size() - n_entities;
        names.push_back(parents.empty() ? entities[entity_order[n_entities]] : concepts[concept_order[n_concepts]]);
        n_entities += parents.empty() ? 1 : 0;
    }
    const auto name_of  = [&](int node) { return names[static_cast<size_t>(node)]; };
    const auto sentence = [&](int parent, int child) {
        const bool is_entity = graph.parents[static_cast<size_t>(parent)].empty();
        return (is_entity ? "" : "Every ") + name_of(parent) + " is a " + name_of(child) + ".";
    };

    std::vector<std::string> sentences;
    for (size_t i = 0; i < graph.parents.size(); ++i) {
        for (const int parent : graph.parents[i]) {
            sentences.push_back(sentence(parent, static_cast<int>(i)));
        }
    }
    rng.shuffle(sentences);
    const bool        swapped = rng.below(2) == 1;
    const std::string right   = name_of(graph.target);
    const std::string wrong   = name_of(graph.neg_target);

    Example example;
    for (const std::string & text : sentences) {
        example.question += text + " ";
    }
    example.question +=
        "Is " + name_of(graph.root) + " a " + (swapped ? wrong : right) + " or " + (swapped ? right : wrong) + "?";
    for (size_t i = 1; i < graph.path.size(); ++i) {
        example.steps.push_back(sentence(graph.path[i - 1], graph.path[i]));
    }
    example.answer = name_of(graph.root) + " is a " + right + ".";
    return example;
}

Dataset generate_prosqa(const DatasetOptions & options) {
    return generate_splits("prosqa", options, possible_depths, normalize_text,
                           [](const SplitRequest & request, QuestionSet & seen, Rng & rng) {
                               return fill_by_drawing(request, seen,
                                                      [&](size_t) { return draw_example(request, rng); });
                           });
}

std::vector<ChanceLevel> prosqa_chance(const std::vector<Example> &) {
    return { { "chance (2 options)", 0.5 } };
}

bool is_prosqa_question(const std::string & question) {
    const std::vector<std::string> words      = final_question(question);
    const auto                     is_concept = [](const std::string & word) {
        return std::find(concepts.begin(), concepts.end(), word) != concepts.end();
    };
    return !words.empty() && is_concept(words[3]) && is_concept(words[5]);
}

Facets prosqa_facets(const Example & example) {
    const std::vector<std::string> words = final_question(example.question);
    std::string                    order = "unknown";
    if (!words.empty()) {
        const std::string is = words[1] + " is a ";
        order                = example.answer == is + words[3] + "."   ? "right first"
                               : example.answer == is + words[5] + "." ? "right second"
                                                                       : order;
    }
    return { { "depth", std::to_string(example.steps.size()) }, { "option_order", order } };
}

std::vector<std::string> prosqa_results(const Example & example) {
    std::vector<std::string> results;
    for (const std::string & step : example.steps) {
        const size_t last_word = std::min(step.rfind(' '), step.size()); // with the space before it
        results.push_back(step.substr(last_word, step.rfind('.') - last_word));
    }
    if (!results.empty()) {
        results.push_back(results.back());
    }
    return results;
}

} // namespace penelope
