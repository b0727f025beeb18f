// Reads the text of a call after its opening mark while it is being written. One class for each way to write a call.
#pragma once

#include "tools/tool.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace penelope {

// What an answer says, in order.
struct ToolEvent {
    enum class Kind { text, begin, arguments, end };
    Kind        kind;
    std::string text; // text: a piece of it; begin: the name of the function; arguments: a piece of the JSON object
};

class CallBody {
  public:
    enum class Status {
        more,   // it needs more text
        began,  // the function is known and its arguments begin, with what is left of the text
        done,   // the call, or the list of calls, is over
        failed, // no call; nothing was taken away
    };

    virtual ~CallBody() = default;

    // Reads from the front of `text` and takes away what it read.
    virtual Status read(std::string & text, std::vector<ToolEvent> & out) = 0;
};

// {"name": ..., "arguments": {...}} or {"name": ..., "parameters": {...}}, or a list of such objects.
std::unique_ptr<CallBody> json_call_body(const std::vector<Tool> & tools);
// <function=NAME> <parameter=KEY> VALUE </parameter> ... </function>
std::unique_ptr<CallBody> xml_call_body(const std::vector<Tool> & tools);
// call:NAME{KEY:VALUE,...}, strings between <|"|>
std::unique_ptr<CallBody> gemma_call_body(const std::vector<Tool> & tools);

bool is_tool(const std::vector<Tool> & tools, std::string_view name);

// A position in text that is still being written.
class TextCursor {
  public:
    explicit TextCursor(std::string_view text) : text_(text) {}

    enum class Match { yes, no, more }; // more: the text ends before it can be told

    Match  skip(std::string_view word); // goes behind the word if it comes next
    void   skip_spaces();
    bool   at_end() const { return pos_ == text_.size(); }
    char   peek() const { return text_[pos_]; } // not at the end
    size_t position() const { return pos_; }
    void   move_to(size_t position) { pos_ = position; }

    std::string_view text() const { return text_; }

  private:
    std::string_view text_;
    size_t           pos_ = 0;
};

} // namespace penelope
