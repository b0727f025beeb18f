// The merge rules of a BPE vocabulary and their application to one piece of text.
// Input: the tokens of the single bytes of a piece; output: the tokens left when no rule applies any more. The rule of
// lowest rank goes first, the leftmost pair among equals. Costs O(n log n) for n symbols.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penelope {

class BpeMerges {
  public:
    static constexpr uint32_t no_rank = UINT32_MAX;

    // Room for n_rules rules, so that adding them never moves the table.
    explicit BpeMerges(size_t n_rules);

    // Adds the rule (left, right) -> result; its rank is the number of rules added before. An earlier rule for the same
    // pair stays in force. Tokens are >= 0.
    void add(int32_t left, int32_t right, int32_t result);

    // Merges symbols in place and shortens the vector. A symbol < 0 takes part in no rule.
    void apply(std::vector<int32_t> & symbols) const;

  private:
    struct Slot {
        uint64_t key;
        uint32_t rank;
    };

    size_t   slot_of(uint64_t key) const { return static_cast<size_t>((key * 0x9E3779B97F4A7C15ull) >> shift_); }
    uint32_t rank_of(int32_t left, int32_t right) const;
    void     apply_by_scanning(std::vector<int32_t> & symbols) const;
    void     apply_by_queue(std::vector<int32_t> & symbols) const;

    std::vector<Slot>    slots_;   // open addressing, a power of two of them
    std::vector<int32_t> results_; // by rank
    int                  shift_;
};

} // namespace penelope
