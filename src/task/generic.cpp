#include "task/generic.h"

#include "task/guess.h"
#include "task/question.h"
#include "text/normalize.h"

namespace penelope {

std::string extract_all(const std::string & text) {
    return trim(normalize_unicode(text));
}

std::vector<ChanceLevel> generic_chance(const std::vector<Example> & examples) {
    return { { "the most frequent answer", majority_share(examples) } };
}

Facets generic_facets(const Example & example) {
    return { { "steps", std::to_string(example.steps.size()) } };
}

} // namespace penelope
