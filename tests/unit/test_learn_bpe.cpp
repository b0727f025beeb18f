// A vocabulary learned from text: which pairs are merged, and that the file's tokenizer uses them.
#include "gguf/reader.h"
#include "support/temp_dir.h"
#include "text/learn_bpe.h"
#include "text/tokenizer.h"
#include "train/random_backbone.h"

#include <doctest/doctest.h>

using namespace penelope;
using penelope::test::TempDir;

TEST_CASE("the most frequent pair is merged first, the smaller ids among equals") {
    // "ab" occurs five times; then "abc" three times; "xy" and "pq" twice each.
    const TokenizerData data = learn_bpe({ "abc\nabc\nabc\nab\nab\nxy\nxy\npq\npq" }, 262);
    CHECK(data.tokens.size() == 262);
    CHECK(data.merges == std::vector<std::string>{ "a b", "ab c", "p q", "x y" });
    CHECK(data.tokens[258] == "ab");
    CHECK(data.tokens[261] == "xy");
}

TEST_CASE("learning ends when no pair occurs twice") {
    CHECK(learn_bpe({ "abc" }, 1000).tokens.size() == size_t(kFewestTokens));
    CHECK(learn_bpe({}, 1000).tokens.size() == size_t(kFewestTokens));
}

TEST_CASE("text becomes fewer tokens and comes back whole; digits stay apart") {
    const std::string text = "the ball is under box 12, the cup is under box 345\n";
    const Tokenizer   tokenizer(learn_bpe({ text, text, text }, 300));
    CHECK(tokenizer.encode(text).size() < text.size() / 2);
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
    CHECK(tokenizer.encode("345").size() == 3);
    const std::string other = "Gr\xc3\xbc\xc3\x9f Gott \xf0\x9f\x8c\x8d";
    CHECK(tokenizer.decode(tokenizer.encode(other)) == other);
}

TEST_CASE("runs of one letter, and bytes that are not UTF-8") {
    const std::string text = "aaaaaaa aaaaa aaa aaaa";
    const Tokenizer   tokenizer(learn_bpe({ text, text, "\xff\xfe" }, 400));
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
}

TEST_CASE("a shape file asks for it") {
    const TempDir dir;
    dir.write("train.jsonl", "{\"question\": \"where is the ball\", \"answer\": \"under the box\"}\n"
                             "{\"question\": \"where is the box\", \"answer\": \"under the ball\"}\n");
    const std::string shape =
        dir.write("shape.toml", "name = \"x\"\nlayers = 1\nwidth = 8\nheads = 2\nffn = 8\ncontext = 64\nvocab = 270\n");
    const NewBackbone made = read_new_backbone(shape, dir.path());
    CHECK(made.vocabulary.tokens.size() == 270);
    write_random_backbone(made.shape, 1, dir.file("a.gguf"), made.vocabulary);
    const NewBackbone again = read_new_backbone(shape, dir.path());
    write_random_backbone(again.shape, 1, dir.file("b.gguf"), again.vocabulary);
    CHECK(test::read_bytes(dir.file("a.gguf")) == test::read_bytes(dir.file("b.gguf")));
    CHECK(read_model_config(GgufReader::open(dir.file("a.gguf"))).n_vocab == 270);
}
