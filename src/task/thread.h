// Thread: chains of edges in shuffled order; follow the chain from a start node to its end. The end of a chain leads to
// itself, so that extra steps change nothing. Each reasoning step is one edge. Depth: number of edges from start to
// end.
//
// Two surfaces. letters: `kQ aa Qa bC ?k` (steps `kQ`, `Qa`; answer `a`), for byte-level vocabularies. words: multi-hop
// questions in English, `Ann hands the key to Bob. Cid keeps the key. ... Ann has the key. Who has it at the end?`.
#pragma once

#include "base/rng.h"
#include "task/task.h"

#include <map>

namespace penelope {

// A parsed question, of either surface. A question of another task has no edges.
struct Thread {
    std::vector<std::pair<std::string, std::string>> edges; // in the order of the text
    std::string                                      start;
};

Thread read_thread(const std::string & question);

// The nodes from the start to the one that leads to itself; empty: there is none.
std::vector<std::string> thread_path(const Thread & thread);

// One example of `depth` edges; every one of n_chains chains has `length` edges before its end. The id stays empty.
Example draw_thread(int depth, int length, int n_chains, const std::string & surface, Rng & rng);

Dataset                  generate_thread(const DatasetOptions & options);
std::string              extract_end(const std::string & text); // a single word or letter, alone on the last line
std::vector<ChanceLevel> thread_chance(const std::vector<Example> & examples);
std::string              thread_baseline_answer(const std::string & question); // first chain end in the text
std::string              normalize_thread(const std::string & question);
bool                     is_thread_question(const std::string & question);
Facets                   thread_facets(const Example & example);

// Where each step leads, then the end.
std::vector<std::string> thread_results(const Example & example);
std::string              thread_start(const Example & example);

} // namespace penelope
