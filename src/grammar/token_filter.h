// Keeps an answer within a grammar: which tokens may come next. One filter per answer.
#pragma once

#include "grammar/automaton.h"
#include "text/tokenizer.h"

namespace penelope {

class TokenFilter {
  public:
    TokenFilter(std::shared_ptr<const Grammar> grammar, Tokenizer tokenizer);

    // Control tokens never, those that end a generation where the text may end.
    bool allows(int32_t token);
    void accept(int32_t token); // which is allowed

    // The logits with -inf for what is not allowed; n values. Throws Error(unsupported) when no token can go on.
    const float * masked(const float * logits, int n);

    bool complete() const; // the text may end here, and nothing can follow

    size_t n_visited() const { return n_visited_; } // nodes of the vocabulary's trie, for all masks so far
    size_t n_masks() const { return masks_.size(); }

  private:
    // The tokens allowed in a state, a bit each. A filter holds a few of them, those used last.
    struct Mask {
        int                   state;
        size_t                last_use;
        std::vector<uint64_t> bits;
        bool                  any; // bit set
    };

    const Mask & find_mask();
    void         fill(Mask & mask);

    Tokenizer          tokenizer_;
    Automaton          automaton_;
    int                state_;
    std::vector<Mask>  masks_;
    std::vector<int>   path_; // states along the bytes of a token
    std::vector<float> logits_;
    size_t             n_uses_ = 0, n_visited_ = 0;
};

} // namespace penelope
