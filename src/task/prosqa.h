// ProsQA: which of two concepts is somebody? Sentences spell the edges of a random directed graph in shuffled order;
// the steps are a shortest path from the entity asked about to the right concept. The procedure reproduces the
// statistics of the published files (nodes, edges, path lengths, families).
#pragma once

#include "base/rng.h"
#include "task/task.h"

namespace penelope {

// A graph that can be asked about. Nodes are numbered in the order they were made; every edge leads from a parent to a
// node with a larger number. Nodes without any edge are left out.
struct ProsqaGraph {
    std::vector<std::vector<int>> parents;
    std::vector<int>              labels; // bit 0: descends from node 0, bit 1: from node 1
    int                           root;   // 0 or 1
    int                           target;
    int                           neg_target;
    std::vector<int>              path; // root, ..., target: one of the shortest
};

// Distance of each node from `from` along the edges; -1 if it cannot be reached.
std::vector<int> prosqa_distances(const ProsqaGraph & graph, int from);

// Draws until a graph has a target at a distance within `depth`. Throws Error (usage) if that hardly ever happens.
ProsqaGraph draw_prosqa_graph(const DepthRange & depth, Rng & rng);

// One of the shortest paths from root to target, all equally likely.
std::vector<int> draw_prosqa_path(const ProsqaGraph & graph, Rng & rng);

// Names, order of the sentences and of the two options are drawn. The id stays empty.
Example draw_prosqa_text(const ProsqaGraph & graph, Rng & rng);

Dataset                  generate_prosqa(const DatasetOptions & options);
std::vector<ChanceLevel> prosqa_chance(const std::vector<Example> & examples);
bool                     is_prosqa_question(const std::string & question);
Facets                   prosqa_facets(const Example & example);
std::vector<std::string> prosqa_results(const Example & example); // the concept each step leads to, the last one again

} // namespace penelope
