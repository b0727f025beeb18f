// State of one answer during decoding: samples tokens, detokenizes them, and checks stop conditions. Shared by sessions
// and the server.
#pragma once

#include "grammar/token_filter.h"
#include "infer/session.h"
#include "text/stop_strings.h"
#include "text/stream_decoder.h"
#include "tools/tool_call_parser.h"

namespace penelope {

// What all answers of a model share. Everything outlives the answers.
struct GenerationEnv {
    const Tokenizer &     tokenizer;
    int                   n_vocab;    // of the logits
    int                   n_ctx;      // rows of the context
    std::function<void()> not_finite; // called when a row of logits is not finite; must throw
};

class GenerationState {
  public:
    // row: the place the first token takes. blank: what is known of the answer so far.
    GenerationState(const GenerationEnv & env, const GenerateOptions & options, int row, Answer initial);

    // Takes the next token and gives the text that is certain with it. logits: n_vocab values.
    std::string accept_logits(const float * logits);
    // Ends the answer where it is and gives the text that was waiting.
    std::string end(FinishReason reason);
    // What the last of these two calls added to the chain of thought.
    const std::string & new_reasoning() const { return new_reasoning_; }
    // With tools: what it added to answer and calls, in order; the text is the one the call returned.
    const std::vector<ToolEvent> & new_events() const { return new_events_; }

    bool    done() const { return done_; }
    int     row() const { return row_; } // the place of the last token taken
    int32_t last_token() const { return answer_.tokens.back(); }

    const Answer & answer() const { return answer_; }
    Answer &       answer() { return answer_; }

  private:
    int32_t     sample_token(const float * logits);
    std::string text_of(int32_t token);
    std::string record_reasoning(const ReasoningPiece & piece); // keeps the reasoning, returns the answer
    std::string record_calls(std::vector<ToolEvent> events);    // keeps the calls, returns the text
    bool        hold_call(const std::string & function, std::string_view arguments);

    const GenerationEnv &         env_;
    GenerateOptions               options_;
    int                           row_; // one before the first token's until it is taken
    Answer                        answer_;
    Sampler                       sampler_;
    std::unique_ptr<TokenFilter>  filter_; // of the answer, or of a call that has begun; null: any token
    bool                          filters_call_ = false;
    std::vector<int32_t>          control_marks_; // control tokens that are marks of tool calls
    std::optional<ToolCallParser> calls_;
    std::vector<ToolEvent>        new_events_;
    StreamDecoder                 text_;
    ReasoningSplitter             parts_;
    StopStrings                   stops_; // of the answer, not of the chain of thought
    std::string                   new_reasoning_;
    bool                          done_ = false;
};

// decode_ms, and the rate that follows from it.
void set_decode_time(Answer & answer, double ms);

} // namespace penelope
