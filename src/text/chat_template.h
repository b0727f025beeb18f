// A conversation as the tokens a chat model expects: the model's chat template, run as it is written. What people and
// models wrote is never read as control tokens, only what the template itself puts in between; for the template too,
// control tokens in a message are text.
//
// A session keeps its cache through a conversation this way: prompt = encode(messages); answer = tokens the model gave;
// next prompt = prompt + answer + encode_turn(). Where the template writes the answer otherwise into the history than
// it was generated (most leave the chain of thought out), the next prompt is encode(all messages); it shares all but
// the last n_generation_prompt() tokens of the one before.
#pragma once

#include "text/jinja.h"
#include "text/reasoning.h"
#include "text/tokenizer.h"
#include "text/tool_call.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace penelope {

struct ChatMessage {
    std::string role; // "system", "user", "assistant" or "tool"
    std::string content;
    std::string reasoning{}; // of an answer: its chain of thought, where the content does not hold it between marks
    std::vector<ToolCall> tool_calls{};   // of an answer
    std::string           tool_call_id{}; // of a tool's result: the call it belongs to ...
    std::string           name{};         // ... and its function, if known
};

// Where a template takes the tools: a variable, or a field of the system message that holds them as JSON text.
enum class ToolPlace { tools, xml_tools, system_message };

// Whether a model that can think aloud before it answers does so.
enum class Thinking { automatic, on, off }; // automatic: what the template does by itself

struct ChatSettings {
    Thinking    thinking = Thinking::automatic;
    OrderedJson variables; // an object of further variables for the template, null for none
    OrderedJson tools;     // a list of functions as the OpenAI API describes them, null for none
    ToolPlace   tool_place = ToolPlace::tools;
    // What templates take for today's date.
    std::optional<std::time_t> now;
};

class ChatTemplate {
  public:
    // The model's own. Throws Error(unsupported), naming --raw, if it has none or one that cannot be run, and
    // Error(usage) when the template cannot be told what settings.thinking says.
    explicit ChatTemplate(Tokenizer tokenizer, ChatSettings settings = {});
    ChatTemplate(Tokenizer tokenizer, Thinking thinking);
    // Another: Jinja text.
    ChatTemplate(Tokenizer tokenizer, std::string source, ChatSettings settings);

    // The same template told otherwise.
    ChatTemplate with(ChatSettings settings) const;
    ChatTemplate with_tools(OrderedJson tools, ToolPlace place) const;

    // All of a conversation; with add_generation_prompt up to where the assistant's next answer starts. Throws
    // Error(usage) for a role that is none of the four and for no messages, and Error(unsupported) with what the
    // template says against them.
    std::string          render(const std::vector<ChatMessage> & messages, bool add_generation_prompt = true) const;
    std::vector<int32_t> encode(const std::vector<ChatMessage> & messages, bool add_generation_prompt = true) const;

    // What follows the tokens of an answer in the next prompt: its end, unless the answer has it, the new messages and
    // the next generation prompt. Nullopt where the template does not write the answer as it was generated.
    std::optional<std::vector<int32_t>> encode_turn(std::vector<ChatMessage>         history,
                                                    const std::vector<int32_t> &     answer,
                                                    const std::vector<ChatMessage> & messages) const;

    bool thinks() const { return thinks_; } // the model can write a chain of thought before its answer
    // How an answer begins after the generation prompt.
    ReasoningStart reasoning_start() const;
    // Whether the template writes an answer otherwise into the history than it was generated. reasoned: it has a chain
    // of thought, even an empty one.
    bool rewrites_answer(bool reasoned) const { return rewrites_[reasoned ? 1 : 0]; }
    int  n_generation_prompt() const { return n_generation_prompt_; } // tokens

    // The token that ends a turn, if the vocabulary has it.
    std::optional<int32_t> end_of_turn() const { return end_of_turn_; }
    const std::string &    start_of_turn() const { return start_of_turn_; } // what the first message begins with

  private:
    JinjaText            run(const std::vector<ChatMessage> & messages, bool add_generation_prompt) const;
    std::vector<int32_t> ids_of(const JinjaText & rendered, size_t begin) const;
    void                 choose_form();
    void                 choose_thinking();
    void                 observe();

    Tokenizer              tokenizer_;
    std::string            source_;
    ChatSettings           settings_;
    OrderedJson            switch_; // the variable that turns thinking on or off, as settings_.thinking wants it
    bool                   content_in_parts_    = false; // the template wants [{"type": "text", "text": ...}]
    bool                   tools_undefined_     = false; // it cannot bear tools that are none
    bool                   thinks_              = false;
    bool                   begins_inside_       = false; // the generation prompt leaves <think> open
    bool                   rewrites_[2]         = { false, false };
    int                    n_generation_prompt_ = 0;
    std::optional<int32_t> end_of_turn_;
    std::string            start_of_turn_;
};

// The Jinja text of a template by the name people know it under (chatml, llama3, ...), or else of the file of this
// path. Throws Error(usage) for a name that is neither, and where the vocabulary lacks control tokens of a named one.
std::string named_chat_template(const std::string & name, const Tokenizer & tokenizer);

} // namespace penelope
