// Grammars on the vocabularies of real models: the mask of every state is what each token says by itself, and whatever
// tokens are drawn, the answer is a text of the grammar.
#include "base/json.h"
#include "base/rng.h"
#include "gguf/reader.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/token_filter.h"
#include "support/files.h"
#include "text/token_trie.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace penelope;

namespace {

Tokenizer vocabulary(const std::string & name) {
    return Tokenizer::from_gguf(GgufReader::open(test::vocab_dir() + "/ggml-vocab-" + name + ".gguf"));
}

const char * const kNames[] = { "llama-bpe", "qwen35" };

// An answer of random tokens among those allowed. Every so many states the mask is compared with what allows() says.
std::string random_answer(const Tokenizer & tokenizer, const std::shared_ptr<const Grammar> & grammar, uint64_t seed,
                          int compared_every) {
    const int          n = int(tokenizer.n_vocab());
    TokenFilter        filter(grammar, tokenizer);
    Rng                rng(seed);
    std::vector<float> logits(static_cast<size_t>(n));
    std::string        text;
    for (int step = 0; !filter.complete(); step++) {
        REQUIRE_MESSAGE(step < 2000, text);
        std::generate(logits.begin(), logits.end(), [&] { return rng.uniform_float(); });
        const float * masked = filter.masked(logits.data(), n);
        if (step % compared_every == 0) {
            int n_wrong = 0, n_allowed = 0;
            for (int32_t token = 0; token < n; token++) {
                const bool allowed = masked[token] > -INFINITY;
                n_allowed += allowed;
                n_wrong += allowed != filter.allows(token) || (allowed && masked[token] != logits[size_t(token)]);
            }
            CHECK_MESSAGE(n_wrong == 0, text);
            CHECK_MESSAGE(n_allowed > 0, text);
        }
        const auto best = int32_t(std::max_element(masked, masked + n) - masked);
        if (tokenizer.is_end_of_generation(best)) {
            break;
        }
        filter.accept(best);
        text += tokenizer.token_bytes(best);
    }
    return text;
}

} // namespace

TEST_CASE("every text token is in the trie once" * doctest::skip(test::lacks_vocab_dir())) {
    for (const char * name : kNames) {
        const Tokenizer   tokenizer = vocabulary(name);
        const TokenTrie & trie      = tokenizer.trie();
        std::vector<int>  found(static_cast<size_t>(tokenizer.n_vocab()));
        std::string       path;
        int               n_wrong = 0;
        for (size_t i = 0; i < trie.n_nodes(); i++) {
            const TokenTrie::Node & node = trie.nodes()[i];
            path.resize(node.depth - 1);
            path += char(node.byte);
            for (size_t k = node.first_token; k < trie.nodes()[i + 1].first_token; k++) {
                n_wrong += tokenizer.token_bytes(trie.ids()[k]) != path;
                found[size_t(trie.ids()[k])]++;
            }
        }
        for (int32_t id = 0; id < tokenizer.n_vocab(); id++) {
            const bool is_text = !is_special(tokenizer.token_type(id)) && !tokenizer.is_end_of_generation(id) &&
                                 !tokenizer.token_bytes(id).empty();
            n_wrong += found[size_t(id)] != int(is_text);
        }
        CHECK_MESSAGE(n_wrong == 0, name);
    }
}

TEST_CASE("answers of random tokens are JSON of the schema" * doctest::skip(test::lacks_vocab_dir())) {
    const auto grammar = std::make_shared<const Grammar>(json_schema_grammar(parse_ordered_json(
        R"({"type":"object","properties":{"name":{"type":"string","maxLength":30},"age":{"type":"integer","minimum":0,)"
        R"("maximum":150},"tags":{"type":"array","items":{"enum":["a","longer tag","\u00e9t\u00e9"]},"maxItems":4}},)"
        R"("required":["name","age","tags"]})",
        "schema")));
    for (const char * name : kNames) {
        const Tokenizer tokenizer = vocabulary(name);
        for (uint64_t seed = 1; seed <= 5; seed++) {
            const std::string text  = random_answer(tokenizer, grammar, seed, 7);
            const Json        value = parse_json(text, "answer");
            CHECK(value["name"].is_string());
            CHECK(value["age"].get<int>() <= 150);
            for (const Json & tag : value["tags"]) {
                CHECK_MESSAGE((tag == "a" || tag == "longer tag" || tag == "\u00e9t\u00e9"), text);
            }
        }
    }
}

TEST_CASE("a large class of characters" * doctest::skip(test::lacks_vocab_dir())) {
    const auto grammar = std::make_shared<const Grammar>(parse_gbnf("root ::= [^e]{200}"));
    for (const char * name : kNames) {
        const std::string text    = random_answer(vocabulary(name), grammar, 9, 20);
        const auto        n_chars = std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
        CHECK(n_chars == 200);
        CHECK(text.find('e') == std::string::npos);
    }
}
