// SentencePiece vocabularies written here: BPE by scores, unigram by the greatest sum, bytes and the unknown token for
// the rest, the space in front.
#include "base/error.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "support/temp_dir.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

#include <doctest/doctest.h>

using namespace penelope;
using Ids = std::vector<int32_t>;

namespace {

constexpr const char * mark = "\xE2\x96\x81"; // U+2581

struct Piece {
    std::string text;
    float       score;
    TokenType   type = TokenType::normal;
};

TokenizerData vocabulary(VocabularyKind kind, const std::vector<Piece> & pieces) {
    TokenizerData data;
    data.source    = "test";
    data.kind      = kind;
    const auto add = [&](const Piece & piece) {
        data.tokens.push_back(piece.text);
        data.scores.push_back(piece.score);
        data.types.push_back(piece.type);
    };
    add({ "<unk>", 0, TokenType::unknown });
    add({ "<s>", 0, TokenType::control });
    add({ "</s>", 0, TokenType::control });
    for (const Piece & piece : pieces) {
        add(piece);
    }
    data.unknown = 0;
    data.bos     = 1;
    data.eos     = 2;
    return data;
}

TokenizerData letters(VocabularyKind kind) {
    return vocabulary(kind, { { "a", -9 },
                              { "b", -9 },
                              { "c", -9 },
                              { mark, -9 },
                              { "ab", -3 },                        // 7
                              { "bc", -2 },                        // 8
                              { "aa", -3 },                        // 9
                              { std::string(mark) + "a", -4 },     // 10
                              { "abc", -5 },                       // 11
                              { "<", -9 },                         // 12
                              { "s", -9 },                         // 13
                              { ">", -9 },                         // 14
                              { "<s", -1 },                        // 15
                              { "<0xC3>", 0, TokenType::byte },    // 16
                              { "<0xA4>", 0, TokenType::byte } }); // 17
}

} // namespace

TEST_CASE("BPE joins by score, from the left among equals") {
    TokenizerData data    = letters(VocabularyKind::spm_bpe);
    data.add_space_prefix = false;
    const Tokenizer tokenizer(data);
    CHECK(tokenizer.encode("") == Ids{});
    CHECK(tokenizer.encode("abc") == Ids{ 11 });        // bc first, then a + bc
    CHECK(tokenizer.encode("aab") == Ids{ 9, 4 });      // aa and ab score alike
    CHECK(tokenizer.encode("ab ab") == Ids{ 7, 6, 7 }); // ab before a space and a
    CHECK(tokenizer.encode("b a") == Ids{ 4, 10 });
    CHECK(tokenizer.encode("aaa") == Ids{ 9, 3 });
    CHECK(tokenizer.decode({ 7, 10, 4 }) == "ab ab");
}

TEST_CASE("what is no token becomes bytes, or unknown") {
    TokenizerData data    = letters(VocabularyKind::spm_bpe);
    data.add_space_prefix = false;
    const Tokenizer tokenizer(data);
    CHECK(tokenizer.encode("a\u00E4") == Ids{ 3, 16, 17 });
    CHECK(tokenizer.decode({ 3, 16, 17 }) == "a\u00E4");
    CHECK(tokenizer.encode("a\u4E2D") == Ids{ 3, 0 });              // no bytes for it
    CHECK(tokenizer.encode("<0xC3>") == Ids{ 12, 0, 0, 0, 0, 14 }); // not the byte of that name
}

TEST_CASE("text never becomes a control token") {
    TokenizerData data    = letters(VocabularyKind::spm_bpe);
    data.add_space_prefix = false;
    const Tokenizer tokenizer(data);
    CHECK(tokenizer.encode("<s>a") == Ids{ 15, 14, 3 });
    EncodeOptions options;
    options.parse_special = true;
    CHECK(tokenizer.encode("<s>a", options) == Ids{ 1, 3 });
}

TEST_CASE("a space in front, and away again") {
    const Tokenizer tokenizer(letters(VocabularyKind::spm_bpe)); // adds a space and BOS unless told otherwise
    EncodeOptions   options;
    options.add_bos = options.parse_special = true;
    CHECK(tokenizer.encode("abc", options) == Ids{ 1, 10, 8 });        // bc, then the space and a
    CHECK(tokenizer.encode("a</s>a", options) == Ids{ 1, 10, 2, 10 }); // after a control token again
    CHECK(tokenizer.decode({ 1, 10, 4 }) == "ab");
    CHECK(tokenizer.decode({ 3, 10 }) == "a a");
    StreamDecoder stream(tokenizer);
    std::string   text;
    for (const int32_t id : { 1, 10, 10 }) {
        text += stream.feed(id);
    }
    CHECK(text + stream.flush() == "a a");
    CHECK(stream.feed(10) == "a"); // another text
}

TEST_CASE("unigram takes the greatest sum") {
    TokenizerData data    = letters(VocabularyKind::unigram);
    data.add_space_prefix = false;
    const Tokenizer tokenizer(data);
    CHECK(tokenizer.encode("abc") == Ids{ 11 });    // -5 against -9 - 2 and -3 - 9
    CHECK(tokenizer.encode("aabc") == Ids{ 9, 8 }); // -3 - 2 against -9 - 5
    CHECK(tokenizer.encode("ab") == Ids{ 7 });
    CHECK(tokenizer.encode("a\u00E4b") == Ids{ 3, 16, 17, 4 });
    CHECK(tokenizer.encode("xyz") == Ids{ 0 }); // neighbours that are unknown are one
    data.merges_spaces = true;
    CHECK(Tokenizer(data).encode("a  a") == Ids{ 3, 10 });
}

TEST_CASE("a vocabulary of scores in a file") {
    const test::TempDir dir;
    const std::string   path = dir.file("vocab.gguf");
    TokenizerData       data = letters(VocabularyKind::spm_bpe);
    data.add_space_prefix    = true;
    {
        GgufWriter writer(path, true);
        write_tokenizer_data(writer, data);
        writer.begin_data();
        writer.finish();
    }
    const TokenizerData back = read_tokenizer_data(GgufReader::open(path));
    CHECK(back.kind == data.kind);
    CHECK(back.tokens == data.tokens);
    CHECK(back.scores == data.scores);
    CHECK(back.add_space_prefix == data.add_space_prefix);
    CHECK(back.merges.empty());

    data.scores.pop_back();
    CHECK_THROWS_WITH_AS(Tokenizer{ data }, doctest::Contains("17 entries for 18 tokens"), Error);
}
