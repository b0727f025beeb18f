// Matches a text against a grammar byte by byte. A pushdown automaton, made deterministic on demand: a state is a set
// of stacks, built when a text first reaches it and then cached. Not thread-safe. Every call throws Error(unsupported)
// when the grammar exceeds the limits on work or memory.
#pragma once

#include "grammar/grammar.h"

#include <array>
#include <memory>
#include <unordered_map>

namespace penelope {

class Automaton {
  public:
    static constexpr int dead = -1; // no text of the grammar has this prefix

    explicit Automaton(std::shared_ptr<const Grammar> grammar);

    int start() const { return start_; }
    int next(int state, unsigned char byte) { // dead -> dead
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

    double used() const; // fraction of the work and memory limits, 0 to 1
    // Counts memory that the caller holds per state towards the limit.
    void count_memory(size_t n_bytes) { charge_memory((n_bytes + sizeof(int) - 1) / sizeof(int)); }

  private:
    static constexpr int none    = -1; // the empty stack
    static constexpr int unknown = -2; // transition not computed yet

    // Stack frame: continue at a position in code_, then return to the frame below.
    struct Frame {
        int place;
        int below;
    };
    struct State {
        std::vector<int> stacks; // top frames, each at a byte set, ascending
        bool             accepts = false;
        std::vector<int> next; // by byte class
    };

    void charge_work(size_t n_steps);
    void charge_memory(size_t n_numbers);
    int  frame(int place, int below);
    int  state_of(std::vector<Frame> open);
    int  transition(int state, size_t group);
    int  add_transition(int state, size_t group);

    std::shared_ptr<const Grammar> grammar_;
    std::vector<Symbol>            code_;         // all alternatives, each followed by kEnd
    std::vector<std::vector<int>>  alternatives_; // positions in code_, by rule
    std::array<uint8_t, 256>       group_of_{};   // byte classes: bytes that no rule distinguishes
    std::vector<unsigned char>     byte_of_;      // a representative of each class

    std::vector<Frame>                               frames_;
    std::unordered_map<uint64_t, int>                frame_ids_;
    std::vector<State>                               states_;
    std::map<std::pair<std::vector<int>, bool>, int> state_ids_;
    size_t                                           work_done_ = 0, table_size_ = 0;
    int                                              start_;
};

} // namespace penelope
