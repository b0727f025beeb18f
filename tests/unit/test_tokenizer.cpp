// The tokenizer on small vocabularies: merging, special tokens, BOS, streaming, and inputs that would take for ever if
// anything were quadratic.
#include "base/error.h"
#include "base/log.h"
#include "base/rng.h"
#include "support/small_vocabulary.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <doctest/doctest.h>

#include <ctime>
#include <map>
#include <random>

using namespace penelope;
using namespace penelope::test;
using Ids = std::vector<int32_t>;

namespace {

// What BPE means, word for word: merge the pair of lowest rank, leftmost first, until there is none.
Ids merge_naively(const TokenizerData & data, const std::string & word) {
    std::map<std::pair<std::string, std::string>, size_t> ranks;
    for (size_t i = 0; i < data.merges.size(); i++) {
        const size_t space = data.merges[i].find(' ', 1);
        ranks.emplace(std::pair(data.merges[i].substr(0, space), data.merges[i].substr(space + 1)), i);
    }
    std::vector<std::string> parts;
    for (const char c : word) {
        parts.emplace_back(1, c);
    }
    while (true) {
        size_t best = SIZE_MAX, at = 0;
        for (size_t i = 0; i + 1 < parts.size(); i++) {
            const auto rule = ranks.find({ parts[i], parts[i + 1] });
            if (rule != ranks.end() && rule->second < best) {
                best = rule->second;
                at   = i;
            }
        }
        if (best == SIZE_MAX) {
            break;
        }
        parts[at] += parts[at + 1];
        parts.erase(parts.begin() + long(at) + 1);
    }
    Ids ids;
    for (const std::string & part : parts) {
        ids.push_back(int32_t(std::find(data.tokens.begin(), data.tokens.end(), part) - data.tokens.begin()));
    }
    return ids;
}

// Of the processor: on a busy machine the clock on the wall says little.
template <class F> double seconds(F && f) {
    const std::clock_t begin = std::clock();
    f();
    return double(std::clock() - begin) / CLOCKS_PER_SEC;
}

std::string repeat(const std::string & text, size_t n) {
    std::string out;
    while (n-- > 0) {
        out += text;
    }
    return out;
}

} // namespace

TEST_CASE("the byte vocabulary") {
    const Tokenizer   tokenizer(byte_level_vocabulary());
    const std::string text = "Hi \xE2\x82\xAC\n";
    CHECK(tokenizer.n_vocab() == 258);
    CHECK(tokenizer.encode(text) == Ids{ 'H', 'i', ' ', 0xE2, 0x82, 0xAC, '\n' });
    CHECK(tokenizer.encode(text, { true, false }).front() == bos_id);
    CHECK(tokenizer.decode(tokenizer.encode(text, { true, false })) == text);
    CHECK(tokenizer.adds_bos());
    CHECK(tokenizer.eos() == eos_id);
    CHECK_FALSE(tokenizer.padding().has_value());
    CHECK(tokenizer.end_of_generation() == Ids{ eos_id });
    CHECK(tokenizer.is_end_of_generation(eos_id));
    CHECK_FALSE(tokenizer.is_end_of_generation(bos_id));
    CHECK(tokenizer.find_token("\xC4\xA0") == ' ');
    CHECK_FALSE(tokenizer.find_token("no such token").has_value());
    CHECK(tokenizer.token_bytes(' ') == " ");
    CHECK(tokenizer.token_text(' ') == "\xC4\xA0");
    CHECK(tokenizer.n_unencodable("anything \x01\xFF") == 0);
}

TEST_CASE("empty text") {
    const Tokenizer tokenizer(byte_level_vocabulary());
    CHECK(tokenizer.encode("").empty());
    CHECK(tokenizer.encode("", { true, true }) == Ids{ bos_id });
    CHECK(tokenizer.decode({}).empty());
    CHECK(tokenizer.n_unencodable("") == 0);
}

TEST_CASE("merges go by rank, then from the left") {
    const Tokenizer tokenizer(small_vocabulary({ "b c", "a b", "a a", "aa a" }));
    CHECK(tokenizer.encode("abc") == Ids{ 'a', 259 });
    CHECK(tokenizer.encode("ab") == Ids{ 260 });
    CHECK(tokenizer.encode("aaa") == Ids{ 262 });
    CHECK(tokenizer.encode("aaaa") == Ids{ 261, 261 });
    // Never across pieces.
    CHECK(tokenizer.encode("b c") == Ids{ 'b', ' ', 'c' });
    // The same again: answers about whole tokens are remembered.
    CHECK(tokenizer.encode("ab ab") == Ids{ 260, ' ', 260 });
    CHECK(tokenizer.encode("aaa") == Ids{ 262 });
}

TEST_CASE("long and short words merge alike, as the definition says") {
    const TokenizerData data =
        small_vocabulary({ "a a", "b a", "a b", "aa ba", "ab b", "aa aa", "aaba ab", "b b", "bb bb", "aaaa aaaa" });
    const Tokenizer tokenizer(data);
    std::mt19937    random(7);
    for (size_t n = 1; n <= 200; n += n < 60 ? 1 : 7) {
        for (int i = 0; i < 5; i++) {
            std::string word;
            for (size_t k = 0; k < n; k++) {
                word += random() % 3 ? 'a' : 'b';
            }
            CAPTURE(word);
            CHECK(tokenizer.encode(word) == merge_naively(data, word));
        }
    }
}

TEST_CASE("whole pieces skip the merges for llama-bpe only") {
    // "abc" is a token that the merges never reach.
    for (const bool skips : { true, false }) {
        TokenizerData data = small_vocabulary({ "b c" }, skips ? "llama-bpe" : "qwen2");
        data.tokens.push_back("abc");
        data.types.push_back(TokenType::normal);
        const Tokenizer tokenizer(data);
        CHECK(tokenizer.encode("abc") == (skips ? Ids{ 260 } : Ids{ 'a', 259 }));
        CHECK(tokenizer.encode("abc") == (skips ? Ids{ 260 } : Ids{ 'a', 259 }));
        CHECK(tokenizer.encode("abcd") == Ids{ 'a', 259, 'd' });
    }
}

TEST_CASE("special tokens") {
    TokenizerData data = small_vocabulary();
    for (const char * text : { "<|a|>", "<|a|>b", "|>b<|" }) {
        data.tokens.push_back(text);
        data.types.push_back(TokenType::control);
    }
    const Tokenizer tokenizer(data);
    CHECK(tokenizer.encode("x<user>y") == Ids{ 'x', user_id, 'y' });
    CHECK(tokenizer.encode("<|a|>").size() == 5);
    CHECK(tokenizer.encode("<|a|>x", { false, true }) == Ids{ 259, 'x' });
    CHECK(tokenizer.encode("<|a|><|a|>", { false, true }) == Ids{ 259, 259 });
    CHECK(tokenizer.encode("<|a|>b", { false, true }) == Ids{ 260 });             // the longer one
    CHECK(tokenizer.encode("<|a|>b<|", { false, true }) == Ids{ 260, '<', '|' }); // longest first, then no overlap
    CHECK(tokenizer.encode("<|begin_of_text|>", { true, true }) == Ids{ bos_id, bos_id });

    CHECK(tokenizer.decode({ bos_id, 'x', user_id, 259, eos_id }) == "x<user>");
    CHECK(tokenizer.decode({ bos_id, 'x', eos_id }, { true }) == "<|begin_of_text|>x<|end_of_text|>");
    CHECK(tokenizer.token_type(259) == TokenType::control);
}

TEST_CASE("special tokens with a common prefix: the longest match wins") {
    TokenizerData data = small_vocabulary();
    for (const char * text : { "pp", "ppq", "qrst" }) {
        data.tokens.push_back(text);
        data.types.push_back(TokenType::user_defined);
    }
    const Tokenizer tokenizer(data);
    CHECK(tokenizer.encode("ppqpp") == Ids{ 260, 259 });
    CHECK(tokenizer.encode("ppqrst") == Ids{ 259, 261 });
    CHECK(tokenizer.encode("ppqppqrst") == Ids{ 260, 259, 261 });

    // Of every length, so that there are millions of matches.
    for (size_t n = 2; n < 2000; n++) {
        data.tokens.push_back(repeat("w", n));
        data.types.push_back(TokenType::user_defined);
    }
    const Tokenizer many(data);
    Ids             ids;
    CHECK(seconds([&] { ids = many.encode(repeat("w", 5000)); }) < 5);
    CHECK(ids.size() == 3);
    CHECK(many.decode(ids) == repeat("w", 5000));
}

TEST_CASE("ends of generation by text, whatever the file calls them") {
    TokenizerData data = small_vocabulary();
    for (const char * text : { "<|im_end|>", "<|endoftext|>", "<|eot_id|>" }) {
        data.tokens.push_back(text);
        data.types.push_back(TokenType::normal);
    }
    data.eot = 'x';
    const Tokenizer tokenizer(data);
    CHECK(tokenizer.end_of_generation() == Ids{ 'x', eos_id, 259, 260, 261 });
    CHECK(tokenizer.token_type(259) == TokenType::control);
    CHECK(tokenizer.decode({ 'a', 259 }) == "a");
}

TEST_CASE("BOS") {
    TokenizerData data = small_vocabulary({}, "llama-bpe");
    data.add_bos.reset();
    CHECK(Tokenizer(data).adds_bos()); // implied
    data.add_bos = false;
    CHECK_FALSE(Tokenizer(data).adds_bos());
    CHECK(Tokenizer(data).encode("a", { true, false }) == Ids{ 'a' });
    data.add_bos = true;
    data.bos.reset();
    CHECK_THROWS_WITH_AS(Tokenizer{ data }, doctest::Contains("bos_token_id"), Error);
    data.pre = "qwen2";
    data.add_bos.reset();
    CHECK_FALSE(Tokenizer(data).adds_bos());
}

TEST_CASE("text that is not UTF-8") {
    const Tokenizer   tokenizer(byte_level_vocabulary());
    const std::string bad(utf8_replacement);
    CHECK(tokenizer.decode(tokenizer.encode("a\xFF"
                                            "b\xE2\x82")) == "a" + bad + "b" + bad);
    CHECK(tokenizer.decode({ 0xE2, 0x82 }) == bad);
    CHECK(tokenizer.decode({ 0xFF, 'a', 0xC3, 0xA9 }) == bad + "a\xC3\xA9");
    CHECK(tokenizer.encode(std::string_view("a\0b", 3)) == Ids{ 'a', 0, 'b' });
}

TEST_CASE("Qwen tokenizers normalize to NFC, others do not") {
    const std::string mark = "\xCC\x81", composed = "\xC3\xA9"; // U+0301, U+00E9
    for (const char * pre : { "qwen2", "qwen35" }) {
        const Tokenizer tokenizer(small_vocabulary({}, pre));
        CHECK(tokenizer.encode("e" + mark) == Ids{ 0xC3, 0xA9 });
        CHECK(tokenizer.encode(composed) == Ids{ 0xC3, 0xA9 });
        CHECK(tokenizer.encode("\xFF"
                               "e" +
                               mark) == Ids{ 0xEF, 0xBF, 0xBD, 0xC3, 0xA9 });
        // Special tokens are found in the text as written, and nothing composes across them.
        CHECK(tokenizer.encode("e<user>" + mark) == Ids{ 'e', user_id, 0xCC, 0x81 });
        CHECK(tokenizer.encode("e<|end_of_text|>" + mark + "e" + mark, { false, true }) ==
              Ids{ 'e', eos_id, 0xCC, 0x81, 0xC3, 0xA9 });
    }
    for (const char * pre : { "gpt-2", "llama-bpe", "smollm", "default" }) {
        CHECK(Tokenizer(small_vocabulary({}, pre)).encode("e" + mark) == Ids{ 'e', 0xCC, 0x81 });
    }
    TokenizerData data = small_vocabulary({}, "qwen2");
    data.tokens[0xCC]  = "x1"; // only decomposed text needs this byte
    CHECK(Tokenizer(data).n_unencodable("e" + mark) == 0);
}

TEST_CASE("combining marks out of order, sorted in less than quadratic time") {
    const Tokenizer tokenizer(small_vocabulary({}, "qwen2"));
    const size_t    n = 1 << 17;
    Ids             ids;
    // U+0315 has the combining class 232 and U+0316 220.
    CHECK(seconds([&] { ids = tokenizer.encode(repeat("\xCC\x95\xCC\x96", n)); }) < 5);
    CHECK((tokenizer.decode(ids) == repeat("\xCC\x96", n) + repeat("\xCC\x95", n)));
}

TEST_CASE("bytes without a token") {
    TokenizerData data = byte_level_vocabulary();
    data.tokens[1]     = "x1"; // no token for the byte 01
    const Tokenizer tokenizer(data);
    CHECK(tokenizer.encode("a\x01"
                           "b") == Ids{ 'a', 'b' });
    CHECK(tokenizer.n_unencodable("a\x01"
                                  "b\x01") == 2);
}

TEST_CASE("odd tokens") {
    TokenizerData data = small_vocabulary();
    for (const auto & [text, type] :
         std::vector<std::pair<const char *, TokenType>>{ { "", TokenType::normal },
                                                          { "", TokenType::unused },
                                                          { "<0xE9>", TokenType::byte },
                                                          { "two words", TokenType::normal },
                                                          { "[PAD1]", TokenType::unused } }) {
        data.tokens.push_back(text);
        data.types.push_back(type);
    }
    const Tokenizer tokenizer(data);
    CHECK(tokenizer.token_bytes(259).empty());
    CHECK(tokenizer.token_bytes(261) == "\xE9");
    CHECK(tokenizer.decode({ 262 }) == "two words");
    CHECK(tokenizer.decode({ 263 }).empty());
    CHECK_FALSE(tokenizer.find_token("").has_value());
    CHECK(tokenizer.encode("[PAD1]", { false, true }).size() == 6);
    for (const int32_t id : { -1, 264 }) {
        CHECK_THROWS_AS(tokenizer.token_bytes(id), Error);
        CHECK_THROWS_AS(tokenizer.decode({ id }), Error);
        CHECK_FALSE(tokenizer.is_end_of_generation(id));
    }
}

TEST_CASE("streaming gives whole characters and in the end the same text") {
    const Tokenizer tokenizer(byte_level_vocabulary());
    StreamDecoder   stream(tokenizer);
    CHECK(stream.feed(0xF0) == "");
    CHECK(stream.feed(0x9F) == "");
    CHECK(stream.feed(0xA6) == "");
    CHECK(stream.feed(0x99) == "\xF0\x9F\xA6\x99");
    CHECK(stream.feed(bos_id) == "");
    CHECK(stream.feed(0xE2) == "");
    CHECK(stream.feed('a') == std::string(utf8_replacement) + "a");
    CHECK(stream.feed(0xC3) == "");
    CHECK(stream.flush() == utf8_replacement);
    CHECK(stream.flush() == "");
    CHECK_THROWS_AS(stream.feed(258), Error);

    std::mt19937 random(1);
    for (int i = 0; i < 300; i++) {
        Ids         ids;
        std::string streamed;
        for (int k = 0; k < 40; k++) {
            // Mostly leading and continuation bytes, so that every kind of break happens.
            const int32_t choices[] = { int32_t(random() % 258), int32_t(0xC0 + random() % 64),
                                        int32_t(0x80 + random() % 64), int32_t(0x80 + random() % 64) };
            ids.push_back(choices[random() % 4]);
        }
        for (const bool special : { false, true }) {
            StreamDecoder again(tokenizer, { special });
            streamed.clear();
            for (const int32_t id : ids) {
                const std::string part = again.feed(id);
                CHECK(valid_utf8_prefix(part) == part.size());
                streamed += part;
            }
            streamed += again.flush();
            CHECK(streamed == tokenizer.decode(ids, { special }));
        }
    }
}

TEST_CASE("long inputs in linear time or nearly") {
    TokenizerData data = small_vocabulary({ "a a", "aa aa", "aaaa aaaa", "a b", "\xC4\xA0 \xC4\xA0" });
    data.tokens.push_back("<<<<<<<<");
    data.types.push_back(TokenType::control);
    for (const char * pre : { "llama-bpe", "gpt-2", "smollm", "qwen2", "qwen35", "default" }) {
        data.pre = pre;
        const Tokenizer tokenizer(data);
        const size_t    n = data.pre == "llama-bpe" ? 1 << 20 : 1 << 18;
        for (const std::string unit : { "a", "ab", " ", "\n", " \n", "1", "'", "<", "<|", "\xE2\x82\xAC", "\xCC\x81",
                                        "\xFF", "\t ", "'s", "  a" }) {
            CAPTURE(pre);
            CAPTURE(unit);
            const std::string text = repeat(unit, n / unit.size());
            Ids               ids;
            // Anything quadratic takes minutes at least, this below 0.3 s.
            CHECK(seconds([&] { ids = tokenizer.encode(text, { false, true }); }) < 10);
            std::string expected;
            append_valid_utf8(expected, text);
            CHECK((tokenizer.decode(ids, { true }) == expected));
        }
    }
}
