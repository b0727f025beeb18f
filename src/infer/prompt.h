// From user text to prompt tokens: applies the prompt or chat template, tokenizes, adds BOS if the vocabulary does.
#pragma once

#include "base/error.h"
#include "infer/engine.h"
#include "text/chat_template.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penelope {

enum class PromptForm {
    templated, // through the prompt template of the model's files; as raw where they have none
    raw,       // as it stands
};

// Whether control tokens written out in a raw text are such. Text of strangers must not be able to speak for the
// template.
enum class ControlTokens { read, as_text };

// Throws Error(usage) for an empty text.
std::vector<int32_t> prompt_tokens(const Engine & engine, const std::string & text, PromptForm form,
                                   ControlTokens control = ControlTokens::read);

struct PromptOptions {
    // auto: the template of the model's files, else the chat template of an instruct model, else none. none: without a
    // chat template. Or the name of one or the path of a Jinja file (named_chat_template), whatever the files say.
    std::string chat_template = "auto";
    bool        raw           = false; // no template of any kind
    std::string system;                // message at the head; only a chat template has a place for it
    Thinking    thinking = Thinking::automatic;
};

// How questions are put to a model, decided once. An instruct model is one whose GGUF has a chat template.
class PromptWriter {
  public:
    // engine outlives it. Throws Error(usage) for a system message without a place, for a name the vocabulary cannot
    // spell and where nobody can think aloud as asked.
    PromptWriter(const Engine & engine, PromptOptions options);

    std::vector<int32_t> tokens(const std::string & text) const; // throws Error(usage) for an empty text

    const ChatTemplate * chat() const { return chat_ ? &*chat_ : nullptr; } // null: a question stands alone
    const std::string &  system() const { return options_.system; }
    // The text has the control tokens of the chat template in it already: it was written to be taken as it is.
    bool looks_templated(const std::string & text) const;
    // What is done and why, in a line.
    std::string description() const;
    // Why auto found no template at all: the model has none, or one that is not understood.
    const std::optional<Error> & no_template() const { return no_template_; }

  private:
    const Engine &              engine_;
    PromptOptions               options_;
    std::optional<ChatTemplate> chat_;
    std::optional<Error>        no_template_;
};

} // namespace penelope
