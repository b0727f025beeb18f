// Input history across chats: a file with one JSON string per line, so that multi-line messages stay one entry. Only
// the user can read it. Errors are ignored: a chat works without history.
#pragma once

#include <string>
#include <vector>

namespace penelope {

class ChatHistory {
  public:
    static constexpr size_t limit = 1000; // messages stored

    // ~/.local/state/penelope/history, or below $XDG_STATE_HOME; "" when there is no home.
    static std::string default_path();

    // path "": no history.
    explicit ChatHistory(std::string path);

    std::vector<std::string> load(); // the last ones, oldest first
    void                     add(const std::string & message);

  private:
    std::string path_;
};

} // namespace penelope
