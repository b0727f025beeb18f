#include "text/prompt_template.h"

#include "base/error.h"

namespace penelope {

std::string prompt_text(const std::string & prompt_template, const std::string & question) {
    const std::string placeholder = "{question}";
    const size_t      place       = prompt_template.find(placeholder);
    if (place == std::string::npos ||
        prompt_template.find(placeholder, place + placeholder.size()) != std::string::npos) {
        throw Error(ErrorKind::usage,
                    "prompt template: must contain {question} exactly once: \"" + prompt_template + "\"",
                    "the default is \"{question}\" and a newline");
    }
    return prompt_template.substr(0, place) + question + prompt_template.substr(place + placeholder.size());
}

} // namespace penelope
