// Reads the messages of penelope chat. On a terminal: libedit with history, completion of slash commands, bracketed
// paste (several pasted lines are one message) and job control (Ctrl-Z). On a pipe: plain lines, nothing is printed.
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
    // completions: words that Tab completes at the start of a line. history: used on a terminal only.
    LineEditor(const Terminal & terminal, std::string prompt, std::vector<std::string> completions,
               ChatHistory history);
    ~LineEditor();

    // On a terminal the caller must hold an InterruptDeferral. Ctrl-C on a line with text only discards the text. The
    // message has no trailing newline.
    ReadStatus read(std::string & message);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;

    ReadStatus read_line(std::string & line);
};

} // namespace penelope
