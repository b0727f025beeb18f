#include "task/generic.h"

#include "task/baseline.h"
#include "task/question.h"
#include "text/normalize.h"

#include <cctype>

namespace penelope {

std::string extract_all(const std::string & text) {
    return trim(normalize_unicode(text));
}

std::vector<ChanceLevel> generic_chance(const std::vector<Example> & examples) {
    return { { "majority baseline", majority_accuracy(examples) } };
}

Facets generic_facets(const Example & example) {
    return { { "steps", std::to_string(example.steps.size()) } };
}

std::string with_leading_space(const std::string & result) {
    const std::string text = trim(result);
    return text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) ? text : " " + text;
}

std::vector<std::string> generic_results(const Example & example) {
    std::vector<std::string> results;
    for (const std::string & step : example.steps) {
        const std::string line  = trim(step.substr(0, step.find_last_not_of(" \t\r\n.,;:!?") + 1));
        const size_t      equal = line.rfind('=');
        results.push_back(with_leading_space(line.substr((equal != std::string::npos ? equal : line.rfind(' ')) + 1)));
    }
    if (!results.empty()) {
        results.push_back(with_leading_space(example.answer));
    }
    return results;
}

std::string generic_start(const Example & example) {
    const std::string line = example.steps.empty() ? "" : trim(example.steps.front());
    // An equation starts from its first number: "2+3=5" from "2", "-2 + 3 = 1" from "-2".
    const bool        is_equation = line.find('=') != std::string::npos;
    const std::string word        = line.substr(0, line.find_first_of(is_equation ? " \t+-*/=" : " \t", 1));
    return with_leading_space(word.substr(0, word.find_last_not_of(".,;:!?") + 1));
}

} // namespace penelope
