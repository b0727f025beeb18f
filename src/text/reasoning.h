// A visible chain of thought, which a model writes between <think> and </think> before its answer, told apart from the
// answer while both are being written.
#pragma once

#include <string>
#include <string_view>

namespace penelope {

constexpr std::string_view think_begin = "<think>", think_end = "</think>";

enum class ReasoningStart {
    none,   // the text is all answer
    marked, // if the first thing the model writes is <think>
    inside, // the prompt has written <think>
};

struct ReasoningPiece {
    std::string reasoning, answer;
};

class ReasoningSplitter {
  public:
    explicit ReasoningSplitter(ReasoningStart start);

    // What is certain by now of both. White space around the reasoning belongs to neither.
    ReasoningPiece feed(std::string_view text);
    ReasoningPiece flush(); // what still waits, when the text ends
    bool           inside() const { return state_ == State::reasoning; }

  private:
    enum class State { begin, reasoning, gap, answer };

    void begin(ReasoningPiece & out, bool at_end);
    void reason(ReasoningPiece & out, bool at_end);
    void answer(ReasoningPiece & out);

    State       state_;
    bool        has_reasoning_ = false; // some of it was given out
    std::string waiting_;
};

// A whole text in its two parts.
ReasoningPiece split_reasoning(std::string_view text, ReasoningStart start);

} // namespace penelope
