// Vocabularies as tokenizer.json and back: llama.cpp's fixtures give the same ids afterwards, and what
// such files look like at their sources is read.
#include "base/error.h"
#include "base/json.h"
#include "base/output_dir.h"
#include "convert/hf_config.h"
#include "convert/hf_export.h"
#include "convert/hf_pre_tokenizer.h"
#include "convert/hf_tokenizer.h"
#include "gguf/reader.h"
#include "support/files.h"
#include "support/temp_dir.h"
#include "text/tokenizer.h"

#include <doctest/doctest.h>

#include <fstream>

using namespace penelope;

namespace {

HfTokenizer read_back(const std::string & folder, size_t n_vocab) {
    HfConfig config;
    config.model.n_vocab = int(n_vocab);
    return read_hf_tokenizer(folder, config);
}

std::string write_json(const test::TempDir & dir, const Json & json) {
    std::ofstream(dir.file("tokenizer.json")) << dump_json(json);
    return dir.file("tokenizer.json").substr(0, dir.file("tokenizer.json").rfind('/'));
}

} // namespace

TEST_CASE("fixtures of scores through tokenizer.json" * doctest::skip(test::lacks_vocab_dir())) {
    for (const char * name : { "llama-spm", "phi-3" }) {
        CAPTURE(name);
        const std::string   vocabulary = test::vocab_dir() + "/ggml-vocab-" + name + ".gguf";
        const TokenizerData data       = read_tokenizer_data(GgufReader::open(vocabulary));
        const test::TempDir dir;
        const std::string   folder = dir.file("hf");
        {
            OutputDir out(folder, false);
            write_hf_tokenizer(data, 4096, out);
            out.commit();
        }
        const TokenizerData back = read_back(folder, data.tokens.size()).data;
        CHECK(back.kind == data.kind);
        CHECK(back.tokens == data.tokens);
        CHECK(back.bos == data.bos);
        CHECK(back.eos == data.eos);
        CHECK(back.unknown == data.unknown);
        CHECK(back.add_bos == data.add_bos);
        CHECK(back.add_space_prefix == true);
        const Tokenizer   first(data), second(back);
        const std::string texts = test::read_bytes(vocabulary + ".inp");
        CHECK(first.encode(texts) == second.encode(texts));
        CHECK(second.encode("Hello world", { true, false }) == std::vector<int32_t>{ 1, 15043, 3186 });
    }
}

TEST_CASE("fixtures of byte-level BPE through tokenizer.json" * doctest::skip(test::lacks_vocab_dir())) {
    for (const char * name : { "llama-bpe", "gpt-2", "qwen35", "refact" }) {
        CAPTURE(name);
        const std::string   vocabulary = test::vocab_dir() + "/ggml-vocab-" + name + ".gguf";
        const TokenizerData data       = read_tokenizer_data(GgufReader::open(vocabulary));
        const test::TempDir dir;
        const std::string   folder = dir.file("hf");
        {
            OutputDir out(folder, false);
            write_hf_tokenizer(data, 4096, out);
            out.commit();
        }
        const TokenizerData back = read_back(folder, data.tokens.size()).data;
        CHECK(back.tokens == data.tokens);
        CHECK(back.merges == data.merges);
        const std::string texts = test::read_bytes(vocabulary + ".inp");
        CHECK(Tokenizer(data).encode(texts) == Tokenizer(back).encode(texts));
    }
}

TEST_CASE("patterns of pre-tokenizers that share a definition") {
    // By whether a piece that is a token is taken whole.
    CHECK(recognize_pre_tokenizer(Json(pre_tokenizer_json("llama-bpe")), true, "t") == "llama-bpe");
    CHECK(recognize_pre_tokenizer(Json(pre_tokenizer_json("llama-bpe")), false, "t") == "dbrx");
    CHECK(recognize_pre_tokenizer(Json(pre_tokenizer_json("dbrx")), false, "t") == "dbrx");
    CHECK(recognize_pre_tokenizer(Json(pre_tokenizer_json("gpt-4o")), false, "t") == "gpt-4o");
    CHECK(recognize_pre_tokenizer(Json(pre_tokenizer_json("tekken")), true, "t") == "tekken");
    CHECK(recognize_pre_tokenizer(Json(pre_tokenizer_json("refact")), false, "t") == "smollm");
    CHECK(recognize_pre_tokenizer(Json(pre_tokenizer_json("stablelm2")), false, "t") == "qwen2");
    CHECK_THROWS_AS(recognize_pre_tokenizer(Json(pre_tokenizer_json("gpt-4o")), true, "t"), Error);
    CHECK_THROWS_AS(pre_tokenizer_json("deepseek-llm"), Error);
}

TEST_CASE("the forms such files have") {
    const std::string mark = "\xE2\x96\x81";
    Json              json;
    json["model"] = {
        { "type", "BPE" },
        { "byte_fallback", true },
        { "vocab",
          { { "<unk>", 0 }, { "<0x41>", 1 }, { "a", 2 }, { "b", 3 }, { mark, 4 }, { "ab", 5 }, { mark + "a", 6 } } },
        { "merges", { "a b", mark + " a" } }
    };
    json["added_tokens"] = Json::array({ { { "id", 0 }, { "content", "<unk>" }, { "special", true } } });
    const Json replace   = { { "type", "Replace" }, { "pattern", { { "String", " " } } }, { "content", mark } };
    const Json prepend   = { { "type", "Prepend" }, { "prepend", mark } };

    const auto prefix = [&](const Json & normalizer, const Json & pre) {
        const test::TempDir dir;
        json["normalizer"]    = normalizer;
        json["pre_tokenizer"] = pre;
        return read_back(write_json(dir, json), 7).data;
    };
    const TokenizerData llama = prefix({ { "type", "Sequence" }, { "normalizers", { prepend, replace } } }, nullptr);
    CHECK(llama.add_space_prefix == true);
    CHECK(llama.scores == std::vector<float>{ -2, -2, -2, -2, -2, 0, -1 });
    CHECK(llama.types[1] == TokenType::byte);
    CHECK(Tokenizer(llama).encode("ab aA") == std::vector<int32_t>{ 4, 5, 6, 1 });
    CHECK(prefix(replace, { { "type", "Split" }, { "pattern", { { "String", " " } } } }).add_space_prefix ==
          false); // Gemma
    CHECK(prefix(nullptr, { { "type", "Metaspace" }, { "replacement", mark }, { "prepend_scheme", "first" } })
              .add_space_prefix == true);
    CHECK(prefix(nullptr, { { "type", "Metaspace" }, { "replacement", mark }, { "prepend_scheme", "never" } })
              .add_space_prefix == false);
    CHECK_THROWS_WITH_AS(prefix({ { "type", "NFKC" } }, nullptr), doctest::Contains("its normalizer is not one of"),
                         Error);
    CHECK_THROWS_WITH_AS(prefix(replace, { { "type", "Digits" } }),
                         doctest::Contains("its pre_tokenizer is not one of"), Error);
}
