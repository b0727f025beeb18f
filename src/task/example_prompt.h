// The prompt of an example: prompt template around the question, or the model's chat template. Shared by training,
// evaluation and `data check`.
#pragma once

#include "task/example.h"
#include "text/chat_template.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penelope {

class ExamplePrompts {
  public:
    // prompt_template: with {question}, or chat_prompt_template. Throws Error(unsupported) if the model has no usable
    // chat template.
    ExamplePrompts(const Tokenizer & tokenizer, std::string prompt_template);

    std::string          text(const Example & example) const;
    std::vector<int32_t> tokens(const Example & example) const; // with BOS if the tokenizer adds one

  private:
    std::vector<ChatMessage> messages(const Example & example) const;

    Tokenizer                   tokenizer_;
    std::string                 template_;
    std::optional<ChatTemplate> chat_;
};

} // namespace penelope
