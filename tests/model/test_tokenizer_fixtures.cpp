// llama.cpp's own vocabulary fixtures: ggml-vocab-NAME.gguf with the texts in .inp and their ids in .out. Every case
// must come out the same, from one thread and from several: byte-level BPE, SentencePiece's BPE (llama-spm, phi-3) and
// Gemma 4's.
#include "base/json.h"
#include "gguf/reader.h"
#include "support/files.h"
#include "support/temp_dir.h"
#include "text/normalize.h"
#include "text/pre_tokenizer.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

#include <doctest/doctest.h>

#include <map>
#include <sstream>
#include <thread>

using namespace penelope;

namespace {

struct Case {
    std::string          text;
    std::vector<int32_t> ids;
};

std::vector<Case> read_cases(const std::string & vocabulary) {
    const std::string separator = "\n__ggml_vocab_test__\n";
    const std::string inputs    = test::read_bytes(vocabulary + ".inp");
    std::vector<Case> cases;
    for (size_t pos = 0; pos < inputs.size();) {
        const size_t end = std::min(inputs.find(separator, pos), inputs.size());
        cases.push_back({ inputs.substr(pos, end - pos), {} });
        pos = end + separator.size();
    }
    std::istringstream outputs(test::read_bytes(vocabulary + ".out"));
    size_t             n_lines = 0;
    for (std::string line; std::getline(outputs, line); n_lines++) {
        REQUIRE(n_lines < cases.size());
        std::istringstream numbers(line);
        for (int32_t id; numbers >> id;) {
            cases[n_lines].ids.push_back(id);
        }
    }
    REQUIRE(n_lines == cases.size());
    return cases;
}

struct Fixture {
    const char * name;
    size_t       n_cases;
};

constexpr Fixture fixtures[] = {
    { "llama-bpe", 46 },      { "gpt-2", 46 }, { "qwen2", 46 },     { "qwen35", 50 },  { "starcoder", 46 },
    { "refact", 46 },         { "mpt", 46 },   { "command-r", 46 }, { "falcon", 46 },  { "deepseek-llm", 46 },
    { "deepseek-coder", 46 }, { "phi-3", 46 }, { "llama-spm", 46 }, { "gemma-4", 46 },
};

TokenizerData load(const Fixture & fixture) {
    return read_tokenizer_data(GgufReader::open(test::vocab_dir() + "/ggml-vocab-" + fixture.name + ".gguf"));
}

} // namespace

TEST_CASE("ids and text of every fixture" * doctest::skip(test::lacks_vocab_dir())) {
    for (const Fixture & fixture : fixtures) {
        CAPTURE(fixture.name);
        const Tokenizer         tokenizer(load(fixture));
        const std::vector<Case> cases = read_cases(test::vocab_dir() + "/ggml-vocab-" + fixture.name + ".gguf");
        CHECK(cases.size() >= fixture.n_cases);
        size_t n_changed = 0;
        for (const Case & c : cases) {
            CAPTURE(c.text);
            // llama.cpp does not normalize, the models' own tokenizers do: see the next test.
            const bool is_changed =
                normalize_unicode(c.text) != c.text && PreTokenizer(tokenizer.pre()).composes_text();
            n_changed += is_changed;
            if (!is_changed) {
                CHECK(tokenizer.encode(c.text) == c.ids);
            }
            CHECK(tokenizer.decode(c.ids) == c.text);

            StreamDecoder stream(tokenizer);
            std::string   streamed;
            for (const int32_t id : c.ids) {
                streamed += stream.feed(id);
            }
            CHECK(streamed + stream.flush() == c.text);
        }
        CHECK(n_changed == (fixture.name == std::string("qwen35") ? 3 : 0));
    }
}

// Qwen's tokenizers put text into NFC. expected.json has the ids of Hugging Face's, made by make.py beside it.
TEST_CASE("text that is not in NFC" * doctest::skip(test::lacks_vocab_dir())) {
    const Json cases = read_json_file(PENELOPE_TEST_DIR "/golden/nfc/expected.json");
    CHECK(cases.size() == 32);
    std::map<std::string, Tokenizer> tokenizers;
    for (const Json & c : cases) {
        const std::string name = c["vocabulary"], what = c["what"], text = c["text"];
        CAPTURE(name);
        CAPTURE(what);
        const std::string path = test::vocab_dir() + "/ggml-vocab-" + name + ".gguf";
        const Tokenizer & tokenizer =
            tokenizers.try_emplace(name, read_tokenizer_data(GgufReader::open(path))).first->second;
        const std::vector<int32_t> expected = c["ids"];
        CHECK(tokenizer.encode(text, { false, true }) == expected);
    }
}

TEST_CASE("one tokenizer in several threads" * doctest::skip(test::lacks_vocab_dir())) {
    const Fixture &          fixture = fixtures[2];
    const Tokenizer          tokenizer(load(fixture));
    const std::vector<Case>  cases = read_cases(test::vocab_dir() + "/ggml-vocab-" + fixture.name + ".gguf");
    std::vector<int>         n_wrong(4, 0);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < n_wrong.size(); i++) {
        threads.emplace_back([&, i] {
            for (const Case & c : cases) {
                n_wrong[i] += tokenizer.encode(c.text) != c.ids;
            }
        });
    }
    for (std::thread & thread : threads) {
        thread.join();
    }
    CHECK(n_wrong == std::vector<int>(4, 0));
}

TEST_CASE("vocabularies as their files describe them" * doctest::skip(test::lacks_vocab_dir())) {
    const auto open = [](const std::string & name) {
        return GgufReader::open(test::vocab_dir() + "/ggml-vocab-" + name + ".gguf");
    };
    const Tokenizer llama = Tokenizer::from_gguf(open("llama-bpe"));
    CHECK(llama.n_vocab() == 128256);
    CHECK(llama.bos() == 128000);
    CHECK(llama.adds_bos());
    CHECK(llama.encode("Hello", { true, false }) == std::vector<int32_t>{ 128000, 9906 });
    CHECK(llama.end_of_generation() == std::vector<int32_t>{ 128001, 128009 });
    CHECK(llama.find_token("<|eot_id|>") == 128009);

    const Tokenizer qwen = Tokenizer::from_gguf(open("qwen35"));
    CHECK_FALSE(qwen.adds_bos());
    CHECK(qwen.encode("<|im_start|>", { true, true }) == std::vector<int32_t>{ 151644 });
    CHECK(qwen.encode("<|im_start|>").size() > 1);

    const Tokenizer spm = Tokenizer::from_gguf(open("llama-spm"));
    CHECK(spm.adds_bos());
    CHECK(spm.encode("Hello", { true, false }) == std::vector<int32_t>{ 1, 15043 });
    CHECK(spm.encode("<s>Hello</s>", { false, true }) == std::vector<int32_t>{ 1, 15043, 2 });
    CHECK(spm.decode(spm.encode("<s>")) == "<s>"); // text, not BOS
    CHECK(spm.encode("<s>").size() > 1);
    CHECK(spm.end_of_generation() == std::vector<int32_t>{ 2 });

    // Another kind of vocabulary is refused.
    CHECK_THROWS_WITH(Tokenizer::from_gguf(open("bert-bge")), doctest::Contains("tokenizer.ggml.model"));
}
