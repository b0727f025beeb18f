// What was typed in earlier chats: a file with one JSON string a line, so that messages of several lines keep their shape. It is
// for the user alone, and a chat goes on without it where it cannot be read or written.
#pragma once

#include <string>
#include <vector>

namespace penelope {

class ChatHistory {
  public:
    static constexpr size_t limit = 1000; // messages that are kept

    // ~/.local/state/penelope/history, or below $XDG_STATE_HOME; "" when there is no home.
    static std::string default_path();

    // path "": remembers nothing.
    explicit ChatHistory(std::string path);

    std::vector<std::string> load(); // the last ones, oldest first
    void                     add(const std::string & message);

  private:
    std::string path_;
};

} // namespace penelope
