#include "task/target_text.h"

namespace penelope {

std::string target_text(const Example & example, size_t n_skip_steps, const std::string & answer_prefix) {
    std::string text;
    for (size_t i = n_skip_steps; i < example.steps.size(); ++i) {
        text += example.steps[i] + "\n";
    }
    return text + answer_prefix + example.answer;
}

} // namespace penelope
