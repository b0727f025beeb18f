// From the text a person types to the tokens a model is asked. Input: an engine and a text; output: prompt tokens, BOS
// included where the vocabulary adds one.
#pragma once

#include "infer/engine.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

enum class PromptForm {
    templated, // through the prompt template of the model's files; as raw where they have none
    raw,       // as it stands
};

// Whether control tokens written out in a raw text are such. Text of strangers must not be able to speak for the template.
enum class ControlTokens { read, as_text };

// Throws Error(usage) for an empty text.
std::vector<int32_t> prompt_tokens(const Engine & engine, const std::string & text, PromptForm form,
                                   ControlTokens control = ControlTokens::read);

} // namespace penelope
