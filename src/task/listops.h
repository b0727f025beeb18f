// Deep ListOps: nested MAX, MIN, MED and SM (sum modulo 10) over digits, `Evaluate: [MAX 3 [MIN 4 7] 2]`. An expression
// of depth D is a spine of exactly D nested operators, each with 2 to 4 arguments; the steps reduce it from the inside
// out, `[MIN 4 7] = 4`, `[MAX 3 4 2] = 4`; the answer is a digit. Depths and digits are balanced by quota.
#pragma once

#include "task/task.h"

#include <array>

namespace penelope {

// Number of examples of one depth and answer in a split.
struct ListopsCell {
    int    depth;
    int    digit;
    size_t n;
};

// Quotas: n is divided evenly over the depths. If `depth` exceeds `known` (the depths trained on), known and unknown
// depths get one half each. Each depth is divided evenly over the ten digits. Remainders go to the known half, the
// smallest depths and the digits in turn, so that no two depths of a half and no two digits differ by more than one.
std::vector<ListopsCell> listops_cells(size_t n, const DepthRange & depth, const DepthRange & known);

Dataset generate_listops(const DatasetOptions & options);

constexpr std::array<const char *, 4> listops_operators = { "MAX", "MIN", "MED", "SM" };

// The operator with this index applied to at least one digit. MED of an even count is the mean of the middle two,
// truncated.
int apply_listops(size_t op, std::vector<int> values);

// Baselines without nested reasoning (listops_surface.cpp): from the outermost operator and its own digits, which is
// listops_baseline_answer(); from the outermost operator alone; one constant digit.
std::vector<ChanceLevel> listops_chance(const std::vector<Example> & examples);
std::string              listops_baseline_answer(const std::string & question); // empty: nothing to guess from
bool                     is_listops_question(const std::string & question);
Facets                   listops_facets(const Example & example);
std::vector<std::string> listops_results(const Example & example); // what follows `=` in each step, then the answer

} // namespace penelope
