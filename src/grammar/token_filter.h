// Constrains sampling to a grammar: computes which tokens may come next. One filter per answer.
#pragma once

#include "grammar/automaton.h"
#include "text/tokenizer.h"

namespace penelope {

class TokenFilter {
  public:
    // written: control tokens that may stand for their spelling.
    TokenFilter(std::shared_ptr<const Grammar> grammar, Tokenizer tokenizer, std::vector<int32_t> written = {});

    // Other control tokens are never allowed; end-of-generation tokens only where the text may end.
    bool allows(int32_t token);
    void accept(int32_t token);              // must be allowed
    bool accept_text(std::string_view text); // false: no text of the grammar goes on like this

    // Sets the n logits of forbidden tokens to -inf. Throws Error(unsupported) when none is allowed.
    const float * masked(const float * logits, int n);

    bool complete() const; // the text is complete and nothing may follow

    size_t n_visited() const { return n_visited_; } // trie nodes visited for all masks so far
    size_t n_masks() const { return masks_.size(); }

  private:
    // Bit mask of the tokens allowed in a state. The filter caches the most recent ones.
    struct Mask {
        int                   state;
        size_t                last_use;
        std::vector<uint64_t> bits;
        bool                  any; // bit set
    };

    const Mask & find_mask();
    void         fill(Mask & mask);

    Tokenizer            tokenizer_;
    std::vector<int32_t> written_;
    Automaton            automaton_;
    int                  state_;
    std::vector<Mask>    masks_;
    std::vector<int>     path_; // automaton states along the bytes of a token
    std::vector<float>   logits_;
    size_t               n_uses_ = 0, n_visited_ = 0;
};

} // namespace penelope
