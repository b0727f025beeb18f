// Follows one JSON value byte by byte and says where it ends or first breaks the grammar of JSON.
#pragma once

#include <string>

namespace penelope {

class JsonScanner {
  public:
    enum class State { inside, done, broken };

    State feed(char c);
    State state() const { return state_; }

  private:
    enum class Expect { value, first_key, key, colon, comma, first_item };

    State fail() { return state_ = State::broken; }
    State end_value();
    State in_string(char c);
    State in_word(char c);
    State in_number(char c);
    State between(char c);
    State begin_value(char c);

    State       state_  = State::inside;
    Expect      expect_ = Expect::value;
    std::string open_; // brackets that are open
    std::string word_; // of true, false, null: what is left of it; of a number: its text
    bool        string_ = false, number_ = false, is_key_ = false;
    int         escaped_ = 0; // characters of an escape that are still to come; -1: its letter
};

} // namespace penelope
