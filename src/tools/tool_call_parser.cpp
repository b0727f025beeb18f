#include "tools/tool_call_parser.h"

#include "text/stop_strings.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr const char * spaces = " \t\r\n";

} // namespace

ToolCallParser::ToolCallParser(const ToolFormat & format, const std::vector<Tool> & tools, OnBegin on_begin)
    : format_(format), tools_(tools), on_begin_(std::move(on_begin)) {}

std::vector<ToolEvent> ToolCallParser::feed(std::string_view text) {
    std::vector<ToolEvent> out;
    waiting_ += text;
    read(out, false);
    return out;
}

std::vector<ToolEvent> ToolCallParser::flush() {
    std::vector<ToolEvent> out;
    read(out, true);
    if (!has_call_ && !spaces_.empty()) {
        out.push_back({ ToolEvent::Kind::text, spaces_ });
    }
    waiting_.clear();
    spaces_.clear();
    return out;
}

void ToolCallParser::read(std::vector<ToolEvent> & out, bool at_end) {
    while (body_ ? read_body(out, at_end) : !close_.empty() ? read_close(at_end) : read_text(out, at_end)) {
    }
}

bool ToolCallParser::read_body(std::vector<ToolEvent> & out, bool at_end) {
    const std::string before   = begun_ ? "" : waiting_;
    const size_t      n_before = out.size();
    CallBody::Status  status   = body_->read(waiting_, out);
    if (status == CallBody::Status::began && on_begin_ && !on_begin_(out.back().text, waiting_) && !begun_) {
        status = CallBody::Status::failed;
    }
    const bool ended = status == CallBody::Status::more && at_end;
    if (status == CallBody::Status::failed || (ended && !begun_ && out.size() == n_before)) {
        out.resize(n_before);
        waiting_ = before;
        body_.reset();
        say(open_, out);
        fresh_ = false;
        return true;
    }
    if (out.size() > n_before) {
        begun_ = has_call_ = true;
        spaces_.clear();
    }
    if (ended) {
        waiting_.clear(); // half an argument
    }
    if (status == CallBody::Status::done || ended) {
        body_.reset();
        close_ = body_close_;
        fresh_ = true;
        return true;
    }
    return status == CallBody::Status::began;
}

bool ToolCallParser::read_close(bool at_end) {
    TextCursor at(waiting_);
    at.skip_spaces();
    const auto found = at.skip(close_);
    if (found == TextCursor::Match::more && !at_end) {
        return false;
    }
    if (found == TextCursor::Match::yes) {
        waiting_.erase(0, at.position());
    }
    close_ = {};
    return true;
}

bool ToolCallParser::read_text(std::vector<ToolEvent> & out, bool at_end) {
    size_t           first = std::string::npos, held = 0;
    const ToolMark * found = nullptr;
    for (const ToolMark & mark : format_.marks) {
        size_t place = std::string::npos;
        if (!mark.open.empty()) {
            place = waiting_.find(mark.open);
            held  = std::max(held, marker_overlap(waiting_, mark.open));
        } else if (fresh_) {
            const size_t visible = waiting_.find_first_not_of(spaces);
            const bool   opens = visible != std::string::npos && (waiting_[visible] == '{' || waiting_[visible] == '[');
            place              = opens ? visible : std::string::npos;
        }
        if (place < first) {
            first = place;
            found = &mark;
        }
    }
    if (!found) {
        const size_t n = waiting_.size() - (at_end ? 0 : held);
        say(std::string_view(waiting_).substr(0, n), out);
        waiting_.erase(0, n);
        return false;
    }
    say(std::string_view(waiting_).substr(0, first), out);
    waiting_.erase(0, first + found->open.size());
    open_       = found->open;
    body_close_ = found->close;
    body_       = format_.body(tools_);
    begun_      = false;
    return true;
}

void ToolCallParser::say(std::string_view text, std::vector<ToolEvent> & out) {
    const size_t last = text.find_last_not_of(spaces);
    if (last == std::string_view::npos) {
        spaces_ += text;
        return;
    }
    out.push_back({ ToolEvent::Kind::text, spaces_ + std::string(text.substr(0, last + 1)) });
    spaces_ = text.substr(last + 1);
    fresh_  = false;
}

} // namespace penelope
