#include "task/generic.h"

#include "task/guess.h"
#include "task/question.h"
#include "text/normalize.h"

#include <cctype>

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

std::string as_in_a_line(const std::string & result) {
    const std::string text = trim(result);
    return text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) ? text : " " + text;
}

std::vector<std::string> generic_results(const Example & example) {
    std::vector<std::string> results;
    for (const std::string & step : example.steps) {
        const std::string line  = trim(step.substr(0, step.find_last_not_of(" \t\r\n.,;:!?") + 1));
        const size_t      equal = line.rfind('=');
        results.push_back(as_in_a_line(line.substr((equal != std::string::npos ? equal : line.rfind(' ')) + 1)));
    }
    if (!results.empty()) {
        results.push_back(as_in_a_line(example.answer));
    }
    return results;
}

std::string generic_start(const Example & example) {
    const std::string line = example.steps.empty() ? "" : trim(example.steps.front());
    const std::string word = line.substr(0, line.find_first_of(" \t"));
    return as_in_a_line(word.substr(0, word.find_last_not_of(".,;:!?") + 1));
}

} // namespace penelope
