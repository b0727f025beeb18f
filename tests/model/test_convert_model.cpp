// Hugging Face Llama checkpoints to GGUF: keys, names, row order and bytes.
#include <doctest/doctest.h>

#include "base/error.h"
#include "convert/hf_config.h"
#include "gguf/reader.h"
#include "support/golden.h"

#include <cmath>
#include <cstring>

using namespace penelope;
using test::GoldenCase;

namespace {

const float * values(const GgufReader & gguf, const std::string & name) {
    const GgufTensor * tensor = gguf.find_tensor(name);
    REQUIRE_MESSAGE(tensor, name);
    REQUIRE(tensor->type == GGML_TYPE_F32);
    return static_cast<const float *>(tensor->data);
}

} // namespace

TEST_CASE("the keys of a converted backbone") {
    const GoldenCase golden("last");
    const auto       gguf = GgufReader::open(golden.backbone());
    CHECK(gguf.get_str("general.architecture") == "llama");
    CHECK(gguf.get_str("general.type") == "model");
    CHECK(gguf.get_str("general.name") == "model");
    CHECK(gguf.get_str("general.size_label") == "287K");
    CHECK(gguf.get_u32("general.file_type") == 0);
    CHECK(gguf.get_u32("llama.block_count") == 6);
    CHECK(gguf.get_u32("llama.context_length") == 512);
    CHECK(gguf.get_u32("llama.embedding_length") == 64);
    CHECK(gguf.get_u32("llama.feed_forward_length") == 160);
    CHECK(gguf.get_u32("llama.attention.head_count") == 4);
    CHECK(gguf.get_u32("llama.attention.head_count_kv") == 2);
    CHECK(gguf.get_u32("llama.attention.key_length") == 16);
    CHECK(gguf.get_f32("llama.attention.layer_norm_rms_epsilon") == 1e-5f);
    CHECK(gguf.get_f32("llama.rope.freq_base") == 10000.0f);
    CHECK(gguf.get_u32("llama.rope.dimension_count") == 16);
    CHECK(gguf.get_u32("llama.vocab_size") == 439);
    CHECK(gguf.get_str("tokenizer.ggml.model") == "gpt2");
    CHECK(gguf.get_str("tokenizer.ggml.pre") == "llama-bpe");
    CHECK(gguf.get_u32("tokenizer.ggml.bos_token_id") == 437);
    CHECK(gguf.get_u32("tokenizer.ggml.eos_token_id") == 438);
    CHECK(gguf.find_bool("tokenizer.ggml.add_bos_token") == true);
    const auto tokens = gguf.get_str_array("tokenizer.ggml.tokens");
    const auto types  = gguf.get_i32_array("tokenizer.ggml.token_type");
    REQUIRE(tokens.size() == 439);
    REQUIRE(types.size() == 439);
    CHECK(tokens[0] == "!");
    CHECK(types[0] == 1);
    CHECK(tokens[437] == "<|begin_of_text|>");
    CHECK(types[437] == 3);
    const auto merges = gguf.get_str_array("tokenizer.ggml.merges");
    CHECK(merges[0] == "p u");
    CHECK(merges[3] == "\xc4\xa0 i");
    CHECK(merges.size() == read_json_file(golden.source("model/tokenizer.json"))["model"]["merges"].size());
}

TEST_CASE("every weight arrives, q and k with their rows in rotation order") {
    for (const char * name : { "last", "middle", "full", "overwrite" }) {
        const GoldenCase golden(name);
        const auto       gguf   = GgufReader::open(golden.backbone());
        const auto       source = SafetensorsReader::open(golden.source("model/model.safetensors"));
        const Json       config = read_json_file(golden.source("model/config.json"));
        const int64_t    d = config["hidden_size"], n_layer = config["num_hidden_layers"], head = config["head_dim"];
        const bool tied = config["tie_word_embeddings"], scaled = config["rope_parameters"]["rope_type"] == "llama3";

        const auto same = [&](const std::string & to, const std::string & from) {
            const auto expected = source.read_f32(from);
            CHECK_MESSAGE(std::memcmp(values(gguf, to), expected.data(), expected.size() * 4) == 0, to);
        };
        same("token_embd.weight", "model.embed_tokens.weight");
        same("output_norm.weight", "model.norm.weight");
        CHECK((gguf.find_tensor("output.weight") == nullptr) == tied);
        CHECK((gguf.find_tensor("rope_freqs.weight") != nullptr) == scaled);
        if (!tied) {
            same("output.weight", "lm_head.weight");
        }
        for (int64_t il = 0; il < n_layer; il++) {
            const std::string to = "blk." + std::to_string(il) + ".", from = "model.layers." + std::to_string(il) + ".";
            same(to + "attn_norm.weight", from + "input_layernorm.weight");
            same(to + "ffn_norm.weight", from + "post_attention_layernorm.weight");
            same(to + "attn_v.weight", from + "self_attn.v_proj.weight");
            same(to + "attn_output.weight", from + "self_attn.o_proj.weight");
            same(to + "ffn_gate.weight", from + "mlp.gate_proj.weight");
            same(to + "ffn_up.weight", from + "mlp.up_proj.weight");
            same(to + "ffn_down.weight", from + "mlp.down_proj.weight");
            for (const auto & [short_to, short_from] : { std::pair("attn_q.weight", "self_attn.q_proj.weight"),
                                                         std::pair("attn_k.weight", "self_attn.k_proj.weight") }) {
                const auto    expected = source.read_f32(from + short_from);
                const float * actual   = values(gguf, to + short_to);
                // HF keeps the pair (b, b + D/2) of a head; GGUF has it at rows 2b and 2b + 1.
                bool equal = true;
                for (int64_t h = 0; h < int64_t(expected.size()) / d / head; h++) {
                    for (int64_t a = 0; a < 2; a++) {
                        for (int64_t b = 0; b < head / 2; b++) {
                            equal = equal && std::memcmp(actual + (h * head + 2 * b + a) * d,
                                                         expected.data() + (h * head + a * (head / 2) + b) * d,
                                                         size_t(d) * 4) == 0;
                        }
                    }
                }
                const std::string tensor = to + short_to;
                CHECK_MESSAGE(equal, tensor);
            }
        }
        CHECK(gguf.tensors().size() == size_t(2 + (tied ? 0 : 1) + (scaled ? 1 : 0) + 9 * n_layer));
    }
}

TEST_CASE("rope factors of Llama-3.2-1B") {
    const auto factors = llama3_rope_factors({ 32.0, 1.0, 4.0, 8192.0 }, 500000.0, 64);
    REQUIRE(factors.size() == 32);
    for (size_t i = 0; i < 15; i++) {
        CHECK(factors[i] == 1.0f);
    }
    CHECK(factors[15] == doctest::Approx(1.65133).epsilon(1e-5));
    CHECK(factors[16] == doctest::Approx(3.29226).epsilon(1e-5));
    CHECK(factors[17] == doctest::Approx(9.66673).epsilon(1e-5));
    for (size_t i = 18; i < 32; i++) {
        CHECK(factors[i] == 32.0f);
    }
}
