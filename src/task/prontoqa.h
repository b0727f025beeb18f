// PrOntoQA: does a property follow from a chain of rules about made-up concepts? A context of shuffled rules and two
// facts, `True or false: Max is not hot.`, and a proof that walks up the chain; distractors share its concepts. Every
// example has the structure of the published 5-hop files, for any number of hops from 1 to 6.
#pragma once

#include "base/rng.h"
#include "task/task.h"

namespace penelope {

// One example whose proof takes n_hops rules before the property; the id stays empty. 1 <= n_hops <= 6.
Example draw_prontoqa_example(int n_hops, Rng & rng);

Dataset                  generate_prontoqa(const DatasetOptions & options);
std::vector<ChanceLevel> prontoqa_chance(const std::vector<Example> & examples);
bool                     is_prontoqa_question(const std::string & question);
Facets                   prontoqa_facets(const Example & example);

// The property each step derives, which the next step starts from; then the answer.
std::vector<std::string> prontoqa_results(const Example & example);

} // namespace penelope
