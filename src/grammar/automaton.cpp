#include "grammar/automaton.h"

#include "base/error.h"

#include <algorithm>
#include <limits>
#include <set>

namespace penelope {

namespace {

constexpr Symbol kEnd          = std::numeric_limits<Symbol>::max(); // end of an alternative
constexpr size_t kMaxStacks    = 20000;                              // per state
constexpr size_t kMaxWork      = 100000000;                          // stacks visited in total, less than a second
constexpr size_t kMaxTableSize = 16000000; // numbers in the tables of all states, some tens of MB
constexpr size_t kOpenSteps    = 16;       // cost of expanding a rule, in visited stacks
constexpr size_t kFrameNumbers = 16;       // cost of a frame and its hash table entry
constexpr size_t kStateNumbers = 64;       // cost of a state without stacks and transitions

[[noreturn]] void fail_ambiguous() {
    throw Error(ErrorKind::unsupported, "grammar: too ambiguous",
                "let its alternatives differ in an earlier character");
}

} // namespace

Automaton::Automaton(std::shared_ptr<const Grammar> grammar) : grammar_(std::move(grammar)) {
    for (const std::vector<Sequence> & rule : grammar_->rules) {
        alternatives_.emplace_back();
        for (const Sequence & alternative : rule) {
            alternatives_.back().push_back(int(code_.size()));
            code_.insert(code_.end(), alternative.begin(), alternative.end());
            code_.push_back(kEnd);
        }
    }
    std::map<std::vector<bool>, uint8_t> groups; // by the sets that contain the byte
    for (size_t byte = 0; byte < 256; byte++) {
        std::vector<bool> in;
        for (const ByteSet & set : grammar_->sets) {
            in.push_back(set.test(byte));
        }
        const auto [place, is_new] = groups.emplace(std::move(in), uint8_t(groups.size()));
        if (is_new) {
            byte_of_.push_back(static_cast<unsigned char>(byte));
        }
        group_of_[byte] = place->second;
    }
    std::vector<Frame> open;
    for (const int place : alternatives_[size_t(grammar_->root)]) {
        open.push_back({ place, none });
    }
    start_ = state_of(std::move(open));
}

double Automaton::used() const {
    return std::max(double(work_done_) / double(kMaxWork), double(table_size_) / double(kMaxTableSize));
}

void Automaton::charge_work(size_t n_steps) {
    work_done_ += n_steps;
    if (work_done_ > kMaxWork) {
        fail_ambiguous();
    }
}

void Automaton::charge_memory(size_t n_numbers) {
    table_size_ += n_numbers;
    if (table_size_ > kMaxTableSize) {
        fail_ambiguous();
    }
}

int Automaton::frame(int place, int below) {
    const uint64_t key         = uint64_t(uint32_t(place)) << 32 | uint32_t(below);
    const auto [found, is_new] = frame_ids_.emplace(key, int(frames_.size()));
    if (is_new) {
        charge_memory(kFrameNumbers);
        frames_.push_back({ place, below });
    }
    return found->second;
}

// Expands rules until every stack is at a byte set.
int Automaton::state_of(std::vector<Frame> open) {
    State         state;
    std::set<int> seen;
    while (!open.empty()) {
        const Frame  top    = open.back();
        const Symbol symbol = code_[size_t(top.place)];
        open.pop_back();
        charge_work(kOpenSteps);
        if (symbol == kEnd && top.below == none) {
            state.accepts = true;
            continue;
        }
        if (symbol == kEnd) {
            open.push_back(frames_[size_t(top.below)]);
            continue;
        }
        const int id = frame(top.place, top.below);
        if (!seen.insert(id).second) {
            continue;
        }
        if (seen.size() > kMaxStacks) {
            fail_ambiguous();
        }
        if (symbol < 0) {
            state.stacks.push_back(id);
            continue;
        }
        // Tail call: after the last symbol of an alternative there is nothing to return to.
        const int after = code_[size_t(top.place) + 1] == kEnd ? top.below : frame(top.place + 1, top.below);
        for (const int place : alternatives_[size_t(symbol)]) {
            open.push_back({ place, after });
        }
    }
    if (state.stacks.empty() && !state.accepts) {
        return dead;
    }
    std::sort(state.stacks.begin(), state.stacks.end());
    const auto [found, is_new] = state_ids_.emplace(std::pair(state.stacks, state.accepts), int(states_.size()));
    if (is_new) {
        charge_memory(kStateNumbers + 2 * state.stacks.size() + byte_of_.size());
        state.next.assign(byte_of_.size(), unknown);
        states_.push_back(std::move(state));
    }
    return found->second;
}

int Automaton::transition(int state, size_t group) {
    charge_work(states_[size_t(state)].stacks.size() + 1);
    std::vector<Frame> open;
    for (const int id : states_[size_t(state)].stacks) {
        const Frame top = frames_[size_t(id)];
        if (grammar_->sets[size_t(~code_[size_t(top.place)])].test(byte_of_[group])) {
            open.push_back({ top.place + 1, top.below });
        }
    }
    return state_of(std::move(open));
}

int Automaton::add_transition(int state, size_t group) {
    const int to                       = transition(state, group); // may add states and move states_
    states_[size_t(state)].next[group] = to;
    return to;
}

int Automaton::next(int state, std::string_view text) {
    for (size_t i = 0; i < text.size() && state != dead; i++) {
        state = next(state, static_cast<unsigned char>(text[i]));
    }
    return state;
}

} // namespace penelope
