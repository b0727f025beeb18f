// Pieces of text for every supported pattern, and the UTF-8 and byte alphabet functions underneath.
#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/pre_tokenizer.h"
#include "text/utf8.h"

#include <doctest/doctest.h>

using namespace penelope;
using Pieces = std::vector<std::string>;

namespace {

Pieces split(const char * pre, std::string_view text, bool has_merges = true) {
    const PreTokenizer pre_tokenizer(pre, "vocabulary", has_merges);
    PieceScanner       scanner(pre_tokenizer, text);
    Pieces             pieces;
    for (std::string_view piece; scanner.next(piece);) {
        pieces.emplace_back(piece);
    }
    return pieces;
}

std::string repaired(std::string_view text) {
    std::string out;
    append_valid_utf8(out, text);
    return out;
}

} // namespace

TEST_CASE("words, digits and contractions") {
    CHECK(split("llama-bpe", "I'LL pay 12345 now.") == Pieces{ "I", "'LL", " pay", " ", "123", "45", " now", "." });
    CHECK(split("llama3", "12345") == split("llama-bpe", "12345"));
    CHECK(split("llama-v3", "12345") == split("llama-bpe", "12345"));
    CHECK(split("qwen2", "I'LL pay 123") == Pieces{ "I", "'LL", " pay", " ", "1", "2", "3" });
    CHECK(split("qwen35", "I'll pay 12") == Pieces{ "I", "'ll", " pay", " ", "1", "2" });
    CHECK(split("gpt-2", "I'LL I'll 123") == Pieces{ "I", "'", "LL", " I", "'ll", " 123" });
    CHECK(split("smollm", "I'LL I'll 123") == Pieces{ "I", "'", "LL", " I", "'ll", " ", "1", "2", "3" });
}

TEST_CASE("white space") {
    // A run leaves its last character to the next word, a digit of smollm's is no word, line ends end a run.
    CHECK(split("gpt-2", "a   b  ") == Pieces{ "a", "  ", " b", "  " });
    CHECK(split("gpt-2", "a   1") == Pieces{ "a", "  ", " 1" });
    CHECK(split("smollm", "a   1   b") == Pieces{ "a", "   ", "1", "  ", " b" });
    CHECK(split("llama-bpe", "a \n\n  b") == Pieces{ "a", " \n\n", " ", " b" });
    CHECK(split("llama-bpe", "=\n\n\tx") == Pieces{ "=\n\n", "\tx" });
    CHECK(split("gpt-2", "=\n\n\tx") == Pieces{ "=", "\n\n", "\t", "x" });
    CHECK(split("qwen2", "\xE3\x80\x80\xE3\x80\x80"
                         "a") == Pieces{ "\xE3\x80\x80", "\xE3\x80\x80"
                                                         "a" });
    // U+180E is not white space any more.
    CHECK(split("gpt-2", "a\xE1\xA0\x8E\xE1\xA0\x8E"
                         "b") == Pieces{ "a", "\xE1\xA0\x8E\xE1\xA0\x8E", "b" });
}

TEST_CASE("combining marks belong to words for qwen35 only") {
    const std::string word = "\xE0\xA4\x95\xE0\xA4\xBF"; // KA + vowel sign I
    CHECK(split("qwen35", word) == Pieces{ word });
    CHECK(split("qwen2", word) == Pieces{ "\xE0\xA4\x95", "\xE0\xA4\xBF" });
}

TEST_CASE("files that name no pattern") {
    CHECK(split("default", "ab+1234567 c") == Pieces{ "ab", "+", "123", "456", "7", " c" });
    CHECK(split("", "x 1") == split("default", "x 1"));
    CHECK(PreTokenizer("").is_fallback());
    CHECK_FALSE(PreTokenizer("qwen2").is_fallback());
}

TEST_CASE("without merges a text stays in one piece, unless pieces are looked up whole") {
    CHECK(split("gpt-2", "two words", false) == Pieces{ "two words" });
    CHECK(split("gpt-2", "", false) == Pieces{});
    CHECK(split("llama-bpe", "two words", false) == Pieces{ "two", " words" });
}

TEST_CASE("every byte in one piece") {
    const std::string text = "It's \xF0\x9F\xA6\x99 1234\r\n\t '\xC2\xA0 \xE2\x80\xA8x\xCC\x81  ...\n\n  end  ";
    for (const char * pre : { "llama-bpe", "gpt-2", "smollm", "qwen2", "qwen35", "default" }) {
        std::string joined;
        for (const std::string & piece : split(pre, text)) {
            CHECK_FALSE(piece.empty());
            joined += piece;
        }
        CHECK(joined == text);
    }
    CHECK(split("gpt-2", "").empty());
}

TEST_CASE("an unknown pattern is refused and the known ones named") {
    try {
        PreTokenizer("unheard-of");
        FAIL("accepted");
    } catch (const Error & error) {
        CHECK(error.kind == ErrorKind::unsupported);
        CHECK(error.message().find("unheard-of") != std::string::npos);
        for (const char * pre : { "llama-bpe", "gpt-2", "smollm", "qwen2", "qwen35" }) {
            CHECK(error.hint.find(pre) != std::string::npos);
        }
    }
}

TEST_CASE("the byte alphabet") {
    std::string all;
    for (int b = 0; b < 256; b++) {
        all += static_cast<char>(b);
    }
    CHECK(alphabet_to_bytes(bytes_to_alphabet(all)) == all);
    CHECK(bytes_to_alphabet(" a\n") == "\xC4\xA0"
                                       "a\xC4\x8A");
    CHECK(bytes_to_alphabet("\x7F") == "\xC4\xA1");
    CHECK(bytes_to_alphabet("\xAD") == "\xC5\x83"); // the last of the 68
    CHECK(bytes_to_alphabet("\xAE") == "\xC2\xAE");
    for (const char * outside : { " ", "\xC5\x84", "\xC2\xA0", "\xE2\x82\xAC", "\xC4",
                                  "\xC4"
                                  "a",
                                  "\xC0\xA0" }) {
        CAPTURE(outside);
        CHECK_FALSE(alphabet_to_bytes(outside).has_value());
    }
}

TEST_CASE("broken UTF-8 becomes U+FFFD, one for each maximal part") {
    const std::string bad(utf8_replacement);
    CHECK(repaired("plain ASCII of more than eight bytes") == "plain ASCII of more than eight bytes");
    CHECK(repaired("\xE2\x82\xAC\xF0\x9F\xA6\x99") == "\xE2\x82\xAC\xF0\x9F\xA6\x99");
    CHECK(repaired("a\x80"
                   "b") == "a" + bad + "b");
    CHECK(repaired("\xE2\x82"
                   "x") == bad + "x");                            // cut short
    CHECK(repaired("\xF0\x9F\xA6") == bad);                       // unfinished
    CHECK(repaired("\xC0\xAF") == bad + bad);                     // overlong
    CHECK(repaired("\xE0\x80\x80") == bad + bad + bad);           // overlong
    CHECK(repaired("\xED\xA0\x80") == bad + bad + bad);           // surrogate
    CHECK(repaired("\xF4\x90\x80\x80") == bad + bad + bad + bad); // above U+10FFFF
    CHECK(repaired("\xF5\xFF") == bad + bad);
    CHECK(valid_utf8_prefix("0123456789\xE2\x82") == 10);
    CHECK(next_utf8_unit("\xE2\x82", 0).state == Utf8State::unfinished);
    CHECK(next_utf8_unit("\xE2\x28", 0).state == Utf8State::broken);
}
