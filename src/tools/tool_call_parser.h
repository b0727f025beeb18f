// Tells the tool calls of an answer from its text while both are being written. What turns out to be no call of a known
// function stays text.
#pragma once

#include "tools/tool_format.h"

namespace penelope {

class ToolCallParser {
  public:
    // Called when the arguments of a function begin, with what is there of them. False: this is no call.
    using OnBegin = std::function<bool(const std::string & function, std::string_view arguments)>;

    // format and tools outlive it.
    ToolCallParser(const ToolFormat & format, const std::vector<Tool> & tools, OnBegin on_begin = {});

    // What is certain by now. White space around calls belongs to nobody.
    std::vector<ToolEvent> feed(std::string_view text);
    std::vector<ToolEvent> flush(); // what still waits, when the text ends

  private:
    void read(std::vector<ToolEvent> & out, bool at_end);
    bool read_body(std::vector<ToolEvent> & out, bool at_end); // false: it needs more text
    bool read_close(bool at_end);
    bool read_text(std::vector<ToolEvent> & out, bool at_end);
    void say(std::string_view text, std::vector<ToolEvent> & out);

    const ToolFormat &        format_;
    const std::vector<Tool> & tools_;
    OnBegin                   on_begin_;
    std::string               waiting_;
    std::string               spaces_;          // white space at the end of the text so far
    bool                      fresh_    = true; // no text since the beginning or the last call
    bool                      has_call_ = false;
    std::unique_ptr<CallBody> body_;          // of the open call
    bool                      begun_ = false; // its function is known
    std::string               open_;          // the mark it began with
    std::string_view          close_;         // the mark that may follow now
    std::string_view          body_close_;
};

} // namespace penelope
