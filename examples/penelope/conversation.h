// The messages of a chat, and the prompt for the next answer.
//
// With a chat template the prompt contains the whole conversation (the session reuses the KV cache and computes only
// new tokens). When it no longer fits the context, the oldest turns are dropped. Without one, a prompt is one message.
#pragma once

#include "infer/prompt.h"
#include "infer/session.h"

#include <optional>
#include <string>
#include <vector>

namespace penelope {

class Conversation {
  public:
    // n_ctx: context size in tokens, of which n_free are reserved for the answer.
    Conversation(const PromptWriter & writer, int n_ctx, int n_free);

    void ask(const std::string & text);
    void answer(const Answer & answer); // to the last question
    void drop_question();               // removes the last one, which has no answer
    // Removes and returns the last answer, so that its question can be asked again; nullopt if there is none.
    std::optional<Answer> take_answer();
    void                  clear(); // all but the system message

    // The prompt of the last question.
    const std::vector<int32_t> & prompt() const { return turns_.back().prompt; }

    size_t      n_messages() const;
    size_t      n_dropped_turns() const; // turns the model no longer sees
    std::string transcript() const;      // JSON Lines: {"role", "content"}, answers with K and the time they took

  private:
    struct Turn {
        std::string           question;
        std::vector<int32_t>  prompt;
        size_t                first = 0; // the oldest turn in the prompt
        std::optional<Answer> answer;
    };

    std::vector<ChatMessage> messages_from(size_t first, size_t end, const std::string & question) const;
    std::vector<int32_t>     encode_from(size_t first, const std::string & question) const;

    const PromptWriter & writer_;
    size_t               n_ctx_, n_free_;
    std::vector<Turn>    turns_;
};

} // namespace penelope
