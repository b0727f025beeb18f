#include "task/text_layout.h"

namespace penelope {

std::string target_text(const Example & example, size_t n_latent, const std::string & answer_prefix) {
    std::string text;
    for (size_t i = n_latent; i < example.steps.size(); ++i) {
        text += example.steps[i] + "\n";
    }
    return text + answer_prefix + example.answer;
}

} // namespace penelope
