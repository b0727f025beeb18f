// What was said in a chat, and the prompt that asks for the next answer.
//
// Without a sidecar the whole conversation goes through the model's chat template (the session computes only what is
// new). With a sidecar, or raw, every message stands alone.
#pragma once

#include "infer/session.h"
#include "text/chat_template.h"

#include <optional>
#include <string>
#include <vector>

namespace penelope {

class Conversation {
  public:
    // Throws Error(unsupported) when the model has no chat template that is understood.
    Conversation(const Engine & engine, std::string system, bool raw, Thinking thinking = Thinking::automatic);

    void ask(const std::string & text);
    void answer(const Answer & answer); // to the last question
    void drop_question();               // the last one, which got no answer
    bool drop_answer(); // the last one, so that its question can be asked again; false when there is none
    void clear();       // all but the system message

    // Tokens that ask the last question.
    const std::vector<int32_t> & prompt() const { return turns_.back().prompt; }
    // What the conversation goes through; null: messages stand alone.
    const ChatTemplate * chat_template() const { return template_ ? &*template_ : nullptr; }

    size_t      n_messages() const;
    std::string transcript() const; // JSON Lines: {"role", "content"}, answers with K and the time they took

  private:
    std::vector<ChatMessage> messages(const std::string & question) const; // all of it, then this

    struct Turn {
        std::string           question;
        std::vector<int32_t>  prompt;
        std::optional<Answer> answer;
    };

    const Engine &              engine_;
    std::string                 system_;
    bool                        raw_;
    std::optional<ChatTemplate> template_; // empty: messages stand alone
    std::vector<Turn>           turns_;
};

} // namespace penelope
