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

  private:
    Tokenizer                                     tokenizer_;
    Automaton                                     automaton_;
    int                                           state_;
    std::unordered_map<int, std::vector<int32_t>> allowed_; // by state
    std::vector<float>                            logits_;
};

} // namespace penelope
