#include "task/example_prompt.h"

#include "base/error.h"
#include "text/prompt_template.h"

namespace penelope {

ExamplePrompts::ExamplePrompts(const Tokenizer & tokenizer, std::string prompt_template)
    : tokenizer_(tokenizer), template_(std::move(prompt_template)) {
    if (template_ != chat_prompt_template) {
        return;
    }
    try {
        chat_.emplace(tokenizer_);
    } catch (const Error & error) {
        throw Error(error.kind, "examples of messages: " + error.message(),
                    "use a model that has a chat template, or write the examples as prompt and completion");
    }
}

std::vector<ChatMessage> ExamplePrompts::messages(const Example & example) const {
    return example.messages.empty() ? std::vector<ChatMessage>{ { "user", example.question } } : example.messages;
}

std::string ExamplePrompts::text(const Example & example) const {
    return chat_ ? chat_->render(messages(example)) : prompt_text(template_, example.question);
}

std::vector<int32_t> ExamplePrompts::tokens(const Example & example) const {
    if (chat_) {
        return chat_->encode(messages(example));
    }
    EncodeOptions options;
    options.add_bos = true; // a question is data: control tokens written out in it are text
    return tokenizer_.encode(text(example), options);
}

} // namespace penelope
