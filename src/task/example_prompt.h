// The prompt of an example as a model is asked: text around the question, or the model's own chat template. Trainer, evaluation
// and `data check` share it.
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
    // prompt_template: with {question}, or chat_prompt_template. Throws Error(unsupported) when the model has no chat template
    // that can be run.
    ExamplePrompts(const Tokenizer & tokenizer, std::string prompt_template);

    std::string          text(const Example & example) const;
    std::vector<int32_t> tokens(const Example & example) const; // BOS included where the vocabulary adds one

  private:
    std::vector<ChatMessage> messages(const Example & example) const;

    Tokenizer                   tokenizer_;
    std::string                 template_;
    std::optional<ChatTemplate> chat_;
};

} // namespace penelope
