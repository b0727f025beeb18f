#include "grammar/token_filter.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>

namespace penelope {

TokenFilter::TokenFilter(std::shared_ptr<const Grammar> grammar, Tokenizer tokenizer)
    : tokenizer_(std::move(tokenizer)), automaton_(std::move(grammar)), state_(automaton_.start()) {}

bool TokenFilter::allows(int32_t token) {
    if (token >= tokenizer_.n_vocab()) {
        return false; // a row of the head that no token stands for
    }
    if (tokenizer_.is_end_of_generation(token)) {
        return automaton_.accepts(state_);
    }
    if (is_special(tokenizer_.token_type(token))) {
        return false;
    }
    const std::string text = tokenizer_.token_bytes(token);
    return !text.empty() && automaton_.next(state_, text) != Automaton::dead;
}

void TokenFilter::accept(int32_t token) {
    if (!tokenizer_.is_end_of_generation(token)) {
        state_ = automaton_.next(state_, tokenizer_.token_bytes(token));
    }
}

const float * TokenFilter::masked(const float * logits, int n) {
    const auto [place, is_new] = allowed_.try_emplace(state_);
    if (is_new) {
        for (int32_t token = 0; token < std::min(n, int(tokenizer_.n_vocab())); token++) {
            if (allows(token)) {
                place->second.push_back(token);
            }
        }
    }
    if (place->second.empty()) {
        throw Error(ErrorKind::unsupported, "grammar: no token of this model can go on from here",
                    "its vocabulary lacks a character the grammar asks for");
    }
    logits_.assign(size_t(n), -INFINITY);
    for (const int32_t token : place->second) {
        logits_[size_t(token)] = logits[token];
    }
    return logits_.data();
}

bool TokenFilter::complete() const {
    return automaton_.accepts(state_) && !automaton_.goes_on(state_);
}

} // namespace penelope
