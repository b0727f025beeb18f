#include "grammar/token_filter.h"

#include "base/error.h"
#include "text/token_trie.h"

#include <algorithm>
#include <cmath>

namespace penelope {

namespace {

// Masks cached. JSON returns to a few states again and again; counts such as {9000} never do. 64 masks of 150,000
// tokens take 1.2 MB.
constexpr size_t kMostMasks = 64;

void set_bit(std::vector<uint64_t> & bits, int32_t token) {
    bits[size_t(token) / 64] |= uint64_t(1) << (size_t(token) % 64);
}

} // namespace

TokenFilter::TokenFilter(std::shared_ptr<const Grammar> grammar, Tokenizer tokenizer, std::vector<int32_t> written)
    : tokenizer_(std::move(tokenizer)), written_(std::move(written)), automaton_(std::move(grammar)),
      state_(automaton_.start()) {}

bool TokenFilter::allows(int32_t token) {
    if (token >= tokenizer_.n_vocab()) {
        return false; // padding row of the output matrix
    }
    if (tokenizer_.is_end_of_generation(token)) {
        return automaton_.accepts(state_);
    }
    if (is_special(tokenizer_.token_type(token)) &&
        std::find(written_.begin(), written_.end(), token) == written_.end()) {
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

bool TokenFilter::accept_text(std::string_view text) {
    state_ = automaton_.next(state_, text);
    return state_ != Automaton::dead;
}

// The mask of the current state: cached, or computed in place of the least recently used one.
const TokenFilter::Mask & TokenFilter::find_mask() {
    const auto found =
        std::find_if(masks_.begin(), masks_.end(), [this](const Mask & mask) { return mask.state == state_; });
    if (found != masks_.end()) {
        found->last_use = ++n_uses_;
        return *found;
    }
    if (masks_.size() < kMostMasks) {
        const size_t n_words = (size_t(tokenizer_.n_vocab()) + 63) / 64;
        automaton_.count_memory(n_words * sizeof(uint64_t));
        masks_.push_back({ Automaton::dead, 0, std::vector<uint64_t>(n_words), false });
    }
    Mask & oldest = *std::min_element(masks_.begin(), masks_.end(),
                                      [](const Mask & a, const Mask & b) { return a.last_use < b.last_use; });
    oldest.state  = Automaton::dead; // invalid while it is filled, which may throw
    fill(oldest);
    oldest.state    = state_;
    oldest.last_use = ++n_uses_;
    return oldest;
}

// Walks the vocabulary trie. Where the automaton rejects a byte, all tokens with this prefix are skipped.
void TokenFilter::fill(Mask & mask) {
    const TokenTrie &                    trie  = tokenizer_.trie();
    const std::vector<TokenTrie::Node> & nodes = trie.nodes();
    std::fill(mask.bits.begin(), mask.bits.end(), 0);
    mask.any = false;
    path_.resize(trie.max_depth() + 1);
    path_[0] = state_;
    for (size_t i = 0; i < trie.n_nodes();) {
        const TokenTrie::Node & node = nodes[i];
        const int               next = automaton_.next(path_[node.depth - 1], node.byte);
        n_visited_++;
        if (next == Automaton::dead) {
            i = node.end;
            continue;
        }
        path_[node.depth] = next;
        i++;
        for (size_t k = node.first_token; k < nodes[i].first_token; k++) {
            set_bit(mask.bits, trie.ids()[k]);
            mask.any = true;
        }
    }
    for (const int32_t token : written_) {
        if (automaton_.next(state_, tokenizer_.token_bytes(token)) != Automaton::dead) {
            set_bit(mask.bits, token);
            mask.any = true;
        }
    }
    if (automaton_.accepts(state_)) {
        for (const int32_t token : tokenizer_.end_of_generation()) {
            set_bit(mask.bits, token);
            mask.any = true;
        }
    }
}

const float * TokenFilter::masked(const float * logits, int n) {
    const Mask & mask = find_mask();
    if (!mask.any) {
        throw Error(ErrorKind::unsupported, "grammar: no token of this vocabulary satisfies the grammar",
                    "the grammar requires a character that the vocabulary lacks");
    }
    logits_.assign(size_t(n), -INFINITY);
    for (size_t word = 0; word < mask.bits.size(); word++) {
        for (uint64_t left = mask.bits[word]; left != 0; left &= left - 1) {
            const size_t token = word * 64 + size_t(__builtin_ctzll(left));
            if (token < size_t(n)) {
                logits_[token] = logits[token];
            }
        }
    }
    return logits_.data();
}

bool TokenFilter::complete() const {
    return automaton_.accepts(state_) && !automaton_.can_continue(state_);
}

} // namespace penelope
