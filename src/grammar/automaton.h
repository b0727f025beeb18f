// Follows a grammar byte by byte: a pushdown automaton whose states are sets of stacks, made when a text first comes to
// them and kept. Not for several threads. Every call throws Error(unsupported) when the grammar takes more work or room
// than one may.
#pragma once

#include "grammar/grammar.h"

#include <array>
#include <memory>
#include <unordered_map>

namespace penelope {

class Automaton {
  public:
    static constexpr int dead = -1; // the state of a text the grammar does not know

    explicit Automaton(std::shared_ptr<const Grammar> grammar);

    int start() const { return start_; }
    int next(int state, unsigned char byte) { // dead stays dead
        if (state == dead) {
            return dead;
        }
        const size_t group = group_of_[byte];
        const int    known = states_[size_t(state)].next[group];
        return known != unknown ? known : add_transition(state, group);
    }
    int next(int state, std::string_view text);

    bool accepts(int state) const { return state != dead && states_[size_t(state)].accepts; } // the text may end here
    bool can_continue(int state) const { return state != dead && !states_[size_t(state)].stacks.empty(); }

    double used() const; // of the work and memory it may take, from 0 to 1
    // Counts memory that a user of the automaton holds for its states, in the automaton's own limit.
    void count_memory(size_t n_bytes) { charge_memory((n_bytes + sizeof(int) - 1) / sizeof(int)); }

  private:
    static constexpr int none    = -1; // the empty stack
    static constexpr int unknown = -2; // a transition nobody has taken

    // What is to be done: go on at a place in code_, then with the stack below.
    struct Frame {
        int place;
        int below;
    };
    struct State {
        std::vector<int> stacks; // frames at a set of bytes, ascending
        bool             accepts = false;
        std::vector<int> next; // by group of bytes
    };

    void charge_work(size_t n_steps);
    void charge_memory(size_t n_numbers);
    int  frame(int place, int below);
    int  state_of(std::vector<Frame> open);
    int  transition(int state, size_t group);
    int  add_transition(int state, size_t group);

    std::shared_ptr<const Grammar> grammar_;
    std::vector<Symbol>            code_;         // all alternatives one after the other, each with an end
    std::vector<std::vector<int>>  alternatives_; // places in code_, by rule
    std::array<uint8_t, 256>       group_of_{};   // bytes the grammar never tells apart
    std::vector<unsigned char>     byte_of_;      // one of each group

    std::vector<Frame>                               frames_;
    std::unordered_map<uint64_t, int>                frame_ids_;
    std::vector<State>                               states_;
    std::map<std::pair<std::vector<int>, bool>, int> state_ids_;
    size_t                                           work_done_ = 0, table_size_ = 0;
    int                                              start_;
};

} // namespace penelope
