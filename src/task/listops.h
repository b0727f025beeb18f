// Deep ListOps: nested MAX, MIN, MED and SM (sum modulo 10) over digits, `Evaluate: [MAX 3 [MIN 4 7] 2]`.
// An expression of depth D is a spine of exactly D nested operators, each with 2 to 4 arguments; the steps reduce it from
// the inside out, `[MIN 4 7] = 4`, `[MAX 3 4 2] = 4`; the answer is a digit. Depths and digits are balanced by quota.
#pragma once

#include "task/task.h"

#include <array>

namespace penelope {

// How many examples of a depth and an answer a split holds.
struct ListopsCell {
    int    depth;
    int    digit;
    size_t n;
};

// Depths share n evenly; where `depth` goes beyond `known` (the depths trained on), the known ones share one half and the
// others the other half. Each depth shares its part evenly among the ten digits. What does not divide is handed out one by
// one: the odd example to the known depths, further ones to the smallest depths, and to the digits in turn, the next depth
// going on where the last one stopped, so that no two depths of a group and no two digits differ by more than one.
std::vector<ListopsCell> listops_cells(size_t n, const DepthRange & depth, const DepthRange & known);

Dataset generate_listops(const DatasetOptions & options);

constexpr std::array<const char *, 4> listops_operators = { "MAX", "MIN", "MED", "SM" };

// The operator with this index applied to at least one digit. MED of an even count is the mean of the middle two, truncated.
int apply_listops(size_t op, std::vector<int> values);

// Answering without nested reasoning, see listops_surface.cpp: from the outermost operator and the digits that stand
// directly in it, which is listops_baseline_answer(), from the outermost operator alone, with one constant digit.
std::vector<ChanceLevel> listops_chance(const std::vector<Example> & examples);
std::string              listops_baseline_answer(const std::string & question); // empty: nothing to guess from
bool                     is_listops_question(const std::string & question);
Facets                   listops_facets(const Example & example);
std::vector<std::string> listops_results(const Example & example); // what follows `=` in each step, then the answer

} // namespace penelope
