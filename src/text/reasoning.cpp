#include "text/reasoning.h"

#include "text/stop_strings.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr const char * spaces = " \t\r\n";

bool begins_with(std::string_view text, std::string_view begin) {
    return text.substr(0, begin.size()) == begin;
}

} // namespace

ReasoningSplitter::ReasoningSplitter(ReasoningStart start)
    : state_(start == ReasoningStart::none     ? State::answer
             : start == ReasoningStart::inside ? State::reasoning
                                               : State::begin) {}

void ReasoningSplitter::begin(ReasoningPiece & out, bool at_end) {
    const std::string_view text    = waiting_;
    const std::string_view visible = text.substr(std::min(text.find_first_not_of(spaces), text.size()));
    if (begins_with(visible, think_begin)) {
        state_   = State::reasoning;
        waiting_ = std::string(visible.substr(think_begin.size()));
        reason(out, at_end);
    } else if (at_end || !begins_with(think_begin, visible)) {
        state_ = State::answer;
        answer(out);
    }
}

void ReasoningSplitter::reason(ReasoningPiece & out, bool at_end) {
    if (!has_reasoning_) {
        waiting_.erase(0, std::min(waiting_.find_first_not_of(spaces), waiting_.size()));
    }
    const size_t end    = waiting_.find(think_end);
    const bool   closed = end != std::string::npos;
    // White space waits too: it is dropped if the end follows.
    size_t n = closed ? end : waiting_.size() - (at_end ? 0 : marker_overlap(waiting_, think_end));
    n        = n == 0 ? 0 : std::min(n, waiting_.find_last_not_of(spaces, n - 1) + 1);
    out.reasoning += waiting_.substr(0, n);
    has_reasoning_ = has_reasoning_ || n > 0;
    waiting_.erase(0, closed ? end + think_end.size() : n);
    if (closed) {
        state_ = State::gap;
        answer(out);
    } else if (at_end) {
        waiting_.clear();
    }
}

void ReasoningSplitter::answer(ReasoningPiece & out) {
    if (state_ == State::gap) {
        waiting_.erase(0, std::min(waiting_.find_first_not_of(spaces), waiting_.size()));
        state_ = waiting_.empty() ? State::gap : State::answer;
    }
    out.answer += waiting_;
    waiting_.clear();
}

ReasoningPiece ReasoningSplitter::feed(std::string_view text) {
    ReasoningPiece out;
    waiting_ += text;
    if (state_ == State::begin) {
        begin(out, false);
    } else if (state_ == State::reasoning) {
        reason(out, false);
    } else {
        answer(out);
    }
    return out;
}

ReasoningPiece ReasoningSplitter::flush() {
    ReasoningPiece out;
    if (state_ == State::begin) {
        begin(out, true);
    } else if (state_ == State::reasoning) {
        reason(out, true);
    }
    return out;
}

ReasoningPiece split_reasoning(std::string_view text, ReasoningStart start) {
    ReasoningSplitter    splitter(start);
    ReasoningPiece       out  = splitter.feed(text);
    const ReasoningPiece rest = splitter.flush();
    out.reasoning += rest.reasoning;
    out.answer += rest.answer;
    return out;
}

} // namespace penelope
