// Reads messages from a person or a pipe. On a terminal: libedit with history, completion of words that start a line,
// pasted text of several lines as one message, and a terminal that is as it was while Ctrl-Z has stopped us. On anything else: plain lines, nothing printed.
//
// A message can span lines in three ways: pasted, with a backslash at the end of a line, or between lines of """.
#pragma once

#include "chat_history.h"
#include "terminal.h"

#include <memory>
#include <string>
#include <vector>

namespace penelope {

enum class ReadStatus {
    message,
    end,         // Ctrl-D or the end of the input
    interrupted, // Ctrl-C on an empty line
};

class LineEditor {
  public:
    // completions: words Tab completes at the start of a line. history: of earlier sessions; used on a terminal only.
    LineEditor(const Terminal & terminal, std::string prompt, std::vector<std::string> completions,
               ChatHistory history);
    ~LineEditor();

    // On a terminal the caller holds an InterruptDeferral. Ctrl-C on a line with text only discards the text. The message
    // has no newline at its end.
    ReadStatus read(std::string & message);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;

    ReadStatus read_line(std::string & line);
};

} // namespace penelope
