// A conversation as the tokens a chat model expects. What people and models wrote is never read as control tokens, only
// what the template itself puts in between.
//
// A session keeps its cache through a conversation this way: prompt = encode(messages); answer = tokens the model gave;
// next prompt = prompt + answer + encode_turn(new messages, answer). Not so where rewrites_answer(): the template leaves
// the chain of thought of earlier answers out, and the next prompt is encode(all messages), which shares all but the last
// n_generation_prompt() tokens of the one before.
#pragma once

#include "text/chat_format.h"
#include "text/reasoning.h"
#include "text/tokenizer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

struct ChatMessage {
    std::string role; // "system", "user" or "assistant"
    std::string content;
    std::string reasoning{}; // of an answer: its chain of thought, where the content does not hold it between marks
};

// Whether a model that can think aloud before it answers does so.
enum class Thinking { automatic, on, off }; // automatic: what the template does by itself

class ChatTemplate {
  public:
    // Throws Error(unsupported), naming --raw, if the model has no template or one we do not know, and Error(usage) when the
    // template cannot be told what `thinking` says.
    explicit ChatTemplate(Tokenizer tokenizer, Thinking thinking = Thinking::automatic);

    // The same template told otherwise.
    ChatTemplate with(Thinking thinking) const { return ChatTemplate(tokenizer_, thinking); }
    // Another than the model's own. Throws Error(usage) if the vocabulary lacks its control tokens.
    ChatTemplate(Tokenizer tokenizer, ChatFormat format);

    const ChatFormat & format() const { return format_; }

    // All of a conversation; with add_generation_prompt up to where the assistant's next answer starts. Throws
    // Error(usage) for a role that is none of the three and for no messages.
    std::string          render(const std::vector<ChatMessage> & messages, bool add_generation_prompt = true) const;
    std::vector<int32_t> encode(const std::vector<ChatMessage> & messages, bool add_generation_prompt = true) const;

    // What follows an answer: its end, unless the answer has it, the new messages and the next generation prompt.
    // answer: its tokens as generated. render_turn() is told instead whether the end of the turn came.
    std::string          render_turn(const std::vector<ChatMessage> & messages, bool ended) const;
    std::vector<int32_t> encode_turn(const std::vector<ChatMessage> & messages,
                                     const std::vector<int32_t> &     answer) const;

    // How an answer begins after the generation prompt.
    ReasoningStart reasoning_start() const;
    // Whether the template writes an answer otherwise into the history than it was generated. reasoned: it has a chain of
    // thought, even an empty one.
    bool rewrites_answer(bool reasoned) const;
    int  n_generation_prompt() const; // tokens

    // The token that ends a turn, if the vocabulary has it. It is among the tokenizer's end_of_generation().
    std::optional<int32_t> end_of_turn() const;
    std::string            start_of_turn() const; // the control token a turn begins with

  private:
    // Text of the template's own, in which control tokens are such, or text of others. The two meet at control tokens
    // only, so that each can be tokenized by itself.
    struct Segment {
        std::string text;
        bool        trusted;
    };
    using Segments = std::vector<Segment>;

    Segments             segments(const std::vector<ChatMessage> & messages, bool add_generation_prompt) const;
    Segments             turn_segments(const std::vector<ChatMessage> & messages, bool ended) const;
    void                 add_message(Segments & out, const ChatMessage & message, bool answers_last_question) const;
    void                 add_turn(Segments & out, const std::string & role, const std::string & content) const;
    void                 add_generation_prompt(Segments & out) const;
    std::vector<int32_t> ids_of(const Segments & segments) const;
    static std::string   text_of(const Segments & segments);

    Tokenizer   tokenizer_;
    ChatFormat  format_;
    std::string generation_suffix_; // as the wanted thinking makes it
};

} // namespace penelope
