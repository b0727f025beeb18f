// The token filter on a vocabulary of 150,000 tokens: how much memory it holds and how much it looks at, and that both
// do not depend on how many states a grammar leads to.
#include "base/error.h"
#include "base/rng.h"
#include "grammar/gbnf.h"
#include "grammar/token_filter.h"
#include "text/token_trie.h"

#include <doctest/doctest.h>
#include <malloc.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>
#include <set>

using namespace penelope;

namespace {

std::atomic<size_t> n_live{ 0 }; // bytes of all objects on the heap

} // namespace

void * operator new(size_t size) {
    void * memory = std::malloc(size);
    if (!memory) {
        throw std::bad_alloc();
    }
    n_live += malloc_usable_size(memory);
    return memory;
}
void operator delete(void * memory) noexcept {
    n_live -= malloc_usable_size(memory);
    std::free(memory);
}
void operator delete(void * memory, size_t) noexcept {
    operator delete(memory);
}

namespace {

constexpr size_t kVocabulary = 150000;
constexpr size_t kMiB        = 1 << 20;

// Words as a language has them, half of them after a blank, beside the 256 bytes.
const Tokenizer & large_tokenizer() {
    static const Tokenizer tokenizer = [] {
        TokenizerData         data    = byte_level_vocabulary();
        const std::string     letters = "eeeeetttaaaooiinnssrrhhlldcumfpgwybvkxjqz0123456789";
        Rng                   rng(3);
        std::set<std::string> known(data.tokens.begin(), data.tokens.end());
        while (data.tokens.size() < kVocabulary) {
            std::string word = rng.uniform() < 0.5 ? "\u0120" : ""; // a blank in the byte alphabet
            for (uint64_t n = 2 + rng.below(8); n > 0; n--) {
                word += letters[rng.below(letters.size())];
            }
            if (known.insert(word).second) {
                data.tokens.push_back(word);
                if (!data.types.empty()) {
                    data.types.push_back(TokenType::normal);
                }
            }
        }
        return Tokenizer(std::move(data));
    }();
    return tokenizer;
}

TokenFilter filter_of(const std::string & gbnf) {
    return TokenFilter(std::make_shared<const Grammar>(parse_gbnf(gbnf)), large_tokenizer());
}

// Takes a token among those allowed and gives it back: a different one each time.
int32_t advance(TokenFilter & filter, const std::vector<float> & logits, Rng & rng) {
    const float * masked = filter.masked(logits.data(), int(kVocabulary));
    for (size_t i = rng.below(kVocabulary);; i = (i + 1) % kVocabulary) {
        if (masked[i] > -INFINITY) {
            filter.accept(int32_t(i));
            return int32_t(i);
        }
    }
}

} // namespace

TEST_CASE("the memory of a filter does not grow with the answer") {
    const std::vector<float> logits(kVocabulary, 1.0f);
    TokenFilter              filter = filter_of("root ::= [^e]{9000}"); // a state of its own for every length
    Rng                      rng(5);
    advance(filter, logits, rng); // whatever is made once
    const size_t before = n_live;
    size_t       most   = 0;
    for (int i = 0; i < 300; i++) {
        advance(filter, logits, rng);
        most = std::max(most, size_t(n_live));
    }
    // 64 masks of 150,000 bits are 1.2 MB; the rest is for about 2000 states of the automaton.
    CHECK(most - before < 4 * kMiB);
    CHECK(filter.n_masks() <= 64);
}

TEST_CASE("a new state costs at most the vocabulary's trie, a narrow one next to nothing") {
    const std::vector<float> logits(kVocabulary, 1.0f);
    const TokenTrie &        trie    = large_tokenizer().trie();
    size_t                   n_bytes = 0;
    for (int32_t id = 0; id < int32_t(kVocabulary); id++) {
        n_bytes += large_tokenizer().token_bytes(id).size();
    }
    CHECK(trie.n_nodes() < n_bytes * 2 / 3);     // beginnings are shared
    CHECK(trie.ids().size() == kVocabulary - 2); // all but the begin and the end of a text

    Rng         rng(6);
    TokenFilter wide = filter_of("root ::= [^e]{9000}");
    for (int i = 0; i < 20; i++) {
        const size_t before = wide.n_visited();
        advance(wide, logits, rng);
        CHECK(wide.n_visited() - before <= trie.n_nodes());
    }
    TokenFilter narrow = filter_of("root ::= [xq]{9000}");
    for (int i = 0; i < 20; i++) {
        const size_t before = narrow.n_visited();
        advance(narrow, logits, rng);
        CHECK(narrow.n_visited() - before < kVocabulary / 100);
    }
    TokenFilter same = filter_of("root ::= [^e]*"); // one state
    advance(same, logits, rng);
    const size_t once = same.n_visited();
    for (int i = 0; i < 20; i++) {
        advance(same, logits, rng);
    }
    CHECK(same.n_visited() == once);
}

TEST_CASE("cached masks equal a check of every token, also after eviction") {
    const std::vector<float> logits(kVocabulary, 1.0f);
    TokenFilter              filter = filter_of("root ::= ( [a-m ]{1,3} [0-9n-z] ){200}");
    Rng                      rng(7);
    for (int i = 0; i < 100; i++) {
        if (i % 9 == 0) {
            const float * masked  = filter.masked(logits.data(), int(kVocabulary));
            int           n_wrong = 0;
            for (int32_t token = 0; token < int32_t(kVocabulary); token++) {
                n_wrong += (masked[token] > -INFINITY) != filter.allows(token);
            }
            CHECK(n_wrong == 0);
        }
        advance(filter, logits, rng);
    }
}

TEST_CASE("masks count in the limit of the automaton") {
    Automaton automaton(std::make_shared<const Grammar>(parse_gbnf("root ::= [a-z]*")));
    CHECK(automaton.used() < 0.001);
    automaton.count_memory(16 * kMiB);
    CHECK(automaton.used() > 0.2);
    CHECK_THROWS_AS(automaton.count_memory(64 * kMiB), Error);
}
