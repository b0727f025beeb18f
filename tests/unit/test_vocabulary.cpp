// Vocabularies: what is refused, their hash, and to a file and back, damaged or not.
#include "base/error.h"
#include "base/log.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "support/small_vocabulary.h"
#include "support/temp_dir.h"

#include <doctest/doctest.h>

#include <map>

using namespace penelope;
using namespace penelope::test;
using Ids = std::vector<int32_t>;

TEST_CASE("damaged vocabularies are errors that say where") {
    const auto message = [](const TokenizerData & data) -> std::string {
        try {
            const Tokenizer tokenizer(data);
            return "accepted";
        } catch (const Error & error) {
            CHECK(error.kind == ErrorKind::format);
            CHECK(error.message().find("'small.gguf': key 'tokenizer.ggml.") == 0);
            return error.message();
        }
    };
    const auto says = [&](const TokenizerData & data, const char * what) {
        const std::string text = message(data);
        CAPTURE(text);
        CHECK(text.find(what) != std::string::npos);
    };
    const TokenizerData good = small_vocabulary({ "a b" });
    CHECK(message(good) == "accepted");

    TokenizerData data = good;
    data.tokens.clear();
    data.types.clear();
    says(data, "no tokens");

    data = good;
    data.types.pop_back();
    says(data, "259 entries for 260 tokens");

    data          = good;
    data.types[3] = static_cast<TokenType>(9);
    says(data, "entry 3 is 9");

    data           = good;
    data.tokens[5] = "a";
    says(data, "'a' is both token 5 and 97");

    for (const char * merge : { "ab", "", " ", "a ", " a", "a  b" }) {
        data = good;
        data.merges.push_back(merge);
        says(data, "merges': entry 1");
    }
    for (const auto & [merge, part] :
         std::map<const char *, const char *>{ { "?? b", "left" }, { "a ??", "right" }, { "a c", "result" } }) {
        data = good;
        data.merges.push_back(merge);
        says(data, part);
    }
    for (const int32_t id : { -1, 260, INT32_MAX }) {
        for (const auto member : { &TokenizerData::bos, &TokenizerData::eos, &TokenizerData::eot, &TokenizerData::eom,
                                   &TokenizerData::unknown, &TokenizerData::padding }) {
            data         = good;
            data.*member = id;
            says(data, "outside the vocabulary of 260 tokens");
        }
    }
    data           = good;
    data.types[65] = TokenType::byte;
    says(data, "token 65");
}

TEST_CASE("a vocabulary without a pattern warns") {
    std::string warnings;
    log_set_sink([&](LogLevel level, std::string_view line) {
        if (level == LogLevel::warning) {
            warnings += line;
        }
    });
    Tokenizer(small_vocabulary({}, ""));
    log_set_sink({});
    CHECK(warnings.find("'small.gguf': key 'tokenizer.ggml.pre'") == 0);
}

TEST_CASE("the hash of a vocabulary") {
    // printf 'a\0\303\251 b\0' | sha256sum
    CHECK(tokens_sha256({ "a", "\xC3\xA9 b" }) == "5a5453505ad4b7f6aa1a804cd36d1dcbb3666ba3714f5de83fb338fd1b4bf70c");
    CHECK(tokens_sha256({ "ab" }) != tokens_sha256({ "a", "b" }));
    const TokenizerData data = small_vocabulary({ "a b" });
    CHECK(Tokenizer(data).tokens_sha256() == tokens_sha256(data.tokens));
}

TEST_CASE("to a file and back") {
    const TempDir dir;
    TokenizerData data = small_vocabulary({ "a b", "ab b" });
    data.padding       = 3;
    data.chat_template = "{{ messages }}";
    const auto write   = [&](const std::string & path) {
        GgufWriter writer(path, true);
        write_tokenizer_data(writer, data);
        writer.begin_data();
        writer.finish();
        return path;
    };
    const std::string   path = write(dir.file("vocabulary.gguf"));
    const TokenizerData back = read_tokenizer_data(GgufReader::open(path));
    CHECK(back.source == path);
    CHECK(back.pre == data.pre);
    CHECK(back.tokens == data.tokens);
    CHECK(back.types == data.types);
    CHECK(back.merges == data.merges);
    CHECK(back.bos == data.bos);
    CHECK(back.eos == data.eos);
    CHECK(back.padding == 3);
    CHECK_FALSE(back.eot.has_value());
    CHECK(back.add_bos == true);
    CHECK(back.chat_template == data.chat_template);

    data = byte_level_vocabulary(); // no merges at all
    CHECK(Tokenizer::from_gguf(GgufReader::open(write(dir.file("bytes.gguf")))).encode("hi") == Ids{ 'h', 'i' });
}

TEST_CASE("a file damaged in any byte is an error or a vocabulary") {
    const TempDir dir;
    TokenizerData data;
    data.pre           = "gpt-2";
    data.tokens        = { "a", "b", "\xC4\xA0", "\xC4\x8A", "ab", "<user>", "<|im_end|>" };
    data.types         = { TokenType::normal, TokenType::normal,       TokenType::normal, TokenType::normal,
                           TokenType::normal, TokenType::user_defined, TokenType::control };
    data.merges        = { "a b" };
    data.bos           = 6;
    data.eos           = 6;
    data.add_bos       = true;
    data.chat_template = "<|im_start|>";
    {
        GgufWriter writer(dir.file("good.gguf"), true);
        write_tokenizer_data(writer, data);
        writer.begin_data();
        writer.finish();
    }
    log_set_sink([](LogLevel, std::string_view) {});
    const std::string good      = read_bytes(dir.file("good.gguf"));
    int               n_refused = 0, n_accepted = 0;
    for (size_t i = 0; i < good.size(); i++) {
        const unsigned flips[]    = { 0x01, 0x80, 0xFF };
        std::string    bytes      = good;
        bytes[i]                  = static_cast<char>(static_cast<unsigned char>(bytes[i]) ^ flips[i % 3]);
        const std::string damaged = dir.write("damaged.gguf", bytes);
        CAPTURE(i);
        try {
            const Tokenizer tokenizer = Tokenizer::from_gguf(GgufReader::open(damaged));
            tokenizer.decode(tokenizer.encode("ab<user> 12\n", { true, true }), { true });
            n_accepted++;
        } catch (const Error & error) {
            n_refused++;
            CHECK(error.message().find(damaged) != std::string::npos);
        }
    }
    log_set_sink({});
    CHECK(n_refused > 0);
    CHECK(n_accepted > 0);
}
