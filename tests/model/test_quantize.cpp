// Quantizing backbones and sidecars: which tensor gets which type, the bytes, and what is refused.
#include <doctest/doctest.h>

#include "base/error.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "sidecar/sidecar.h"
#include "support/golden.h"

#include <cmath>
#include <cstring>
#include <map>
#include <random>

using namespace penelope;
using test::GoldenCase;
using test::TempDir;
namespace fs = std::filesystem;

namespace {

// A backbone of random weights with rows that fit every block size; n_layer layers of only the tensors the mixes look
// at.
std::string random_backbone(const std::string & path, int n_layer, bool tied, int64_t d = 256, uint32_t n_head_kv = 4) {
    GgufWriter writer(path, false);
    writer.set_str("general.architecture", "llama");
    writer.set_u32("llama.block_count", uint32_t(n_layer));
    writer.set_u32("llama.attention.head_count", 4);
    writer.set_u32("llama.attention.head_count_kv", n_head_kv);
    std::vector<std::pair<std::string, std::vector<int64_t>>> tensors = { { "token_embd.weight", { d, 300 } },
                                                                          { "output_norm.weight", { d } } };
    if (!tied) {
        tensors.push_back({ "output.weight", { d, 300 } });
    }
    for (int il = n_layer - 1; il >= 0; il--) { // not in layer order
        const std::string blk = "blk." + std::to_string(il) + ".";
        tensors.push_back({ blk + "attn_norm.weight", { d } });
        tensors.push_back({ blk + "attn_q.weight", { d, 64 } });
        tensors.push_back({ blk + "attn_v.weight", { d, 32 } });
        tensors.push_back({ blk + "attn_output.weight", { d, 32 } });
        tensors.push_back({ blk + "ffn_down.weight", { 2 * d, 40 } });
    }
    std::mt19937                    random(3);
    std::normal_distribution<float> normal(0.0f, 0.05f);
    for (const auto & [name, ne] : tensors) {
        writer.add_tensor(name, GGML_TYPE_F32, ne);
    }
    writer.begin_data();
    for (const auto & [name, ne] : tensors) {
        std::vector<float> values(size_t(ne[0] * (ne.size() > 1 ? ne[1] : 1)));
        for (auto & value : values) {
            value = normal(random);
        }
        writer.write_tensor(name, values.data(), values.size() * 4);
    }
    writer.finish();
    return path;
}

QuantizeOptions options_for(const std::string & in, const std::string & out, const std::string & type) {
    QuantizeOptions options;
    options.in_path  = in;
    options.out_path = out;
    options.type     = type;
    return options;
}

std::string message_of(const QuantizeOptions & options) {
    try {
        quantize_file(options);
    } catch (const Error & e) {
        return e.message() + " | " + e.hint;
    }
    return "";
}

std::map<std::string, ggml_type> types_of(const FileResult & result) {
    std::map<std::string, ggml_type> types;
    for (const auto & tensor : result.tensors) {
        types[tensor.name] = tensor.type;
    }
    return types;
}

} // namespace

TEST_CASE("quantized bytes are those of one call of ggml over the whole tensor") {
    const TempDir dir;
    const auto    in     = random_backbone(dir.file("in.gguf"), 2, true);
    const auto    source = GgufReader::open(in);
    for (const char * type : { "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL",
                               "IQ4_XS", "F16", "BF16" }) {
        auto options             = options_for(in, dir.file("out.gguf"), type);
        options.force            = true;
        options.stream.n_threads = 3;
        const auto result        = quantize_file(options);
        const auto out           = GgufReader::open(options.out_path);
        CHECK(result.fallbacks.empty());
        CHECK(out.tensors().size() == source.tensors().size());
        for (const auto & tensor : out.tensors()) {
            const GgufTensor & from = *source.find_tensor(tensor.name);
            const auto *       f32  = static_cast<const float *>(from.data);
            std::vector<char>  expected(tensor.size);
            if (tensor.type == GGML_TYPE_F32) {
                CHECK(tensor.n_dims == 1);
                std::memcpy(expected.data(), f32, tensor.size);
            } else if (tensor.type == GGML_TYPE_BF16) {
                ggml_fp32_to_bf16_row_ref(f32, reinterpret_cast<ggml_bf16_t *>(expected.data()), from.n_elements());
            } else {
                ggml_quantize_chunk(tensor.type, f32, expected.data(), 0, from.n_elements() / from.ne[0], from.ne[0],
                                    nullptr);
            }
            CHECK_MESSAGE(std::memcmp(expected.data(), tensor.data, tensor.size) == 0, type << " " << tensor.name);
        }
    }
}

TEST_CASE("the mixes choose as llama.cpp does") {
    const TempDir dir;
    for (const bool tied : { true, false }) {
        const auto in      = random_backbone(dir.file(tied ? "t.gguf" : "u.gguf"), 16, tied);
        auto       options = options_for(in, "", "Q4_K_M");
        options.dry_run    = true;
        const auto types   = types_of(quantize_file(options));
        CHECK(types.at("token_embd.weight") == (tied ? GGML_TYPE_Q6_K : GGML_TYPE_Q4_K));
        if (!tied) {
            CHECK(types.at("output.weight") == GGML_TYPE_Q6_K);
        }
        CHECK(types.at("output_norm.weight") == GGML_TYPE_F32);
        // Layers of llama-quantize's Q4_K_M with 16 layers: the first two, the last two, every third between.
        for (int il = 0; il < 16; il++) {
            const bool        more = il < 2 || il >= 14 || (il - 2) % 3 == 2;
            const std::string blk  = "blk." + std::to_string(il) + ".";
            CHECK(types.at(blk + "attn_v.weight") == (more ? GGML_TYPE_Q6_K : GGML_TYPE_Q4_K));
            CHECK(types.at(blk + "ffn_down.weight") == (more ? GGML_TYPE_Q6_K : GGML_TYPE_Q4_K));
            CHECK(types.at(blk + "attn_q.weight") == GGML_TYPE_Q4_K);
            CHECK(types.at(blk + "attn_norm.weight") == GGML_TYPE_F32);
        }
        options.type = "q4_0";
        CHECK(types_of(quantize_file(options)).at(tied ? "token_embd.weight" : "output.weight") == GGML_TYPE_Q6_K);
        options.type = "Q8_0";
        CHECK(types_of(quantize_file(options)).at(tied ? "token_embd.weight" : "output.weight") == GGML_TYPE_Q8_0);
        CHECK(!fs::exists(dir.file("out.gguf")));
    }
}

TEST_CASE("each mix gives more bits to the tensors that llama.cpp's gives them to") {
    struct Expected {
        const char * type;
        uint32_t     n_head_kv;
        ggml_type    value_0, value_3, value_9, down_0, down_5, output_0, query;
    };
    // 16 layers: the first eighth is layers 0 and 1, the first sixteenth layer 0.
    const std::vector<Expected> cases = {
        { "Q2_K", 4, GGML_TYPE_Q3_K, GGML_TYPE_Q3_K, GGML_TYPE_Q3_K, GGML_TYPE_Q3_K, GGML_TYPE_Q3_K, GGML_TYPE_Q3_K,
          GGML_TYPE_Q2_K },
        { "Q2_K", 1, GGML_TYPE_Q4_K, GGML_TYPE_Q4_K, GGML_TYPE_Q4_K, GGML_TYPE_Q3_K, GGML_TYPE_Q3_K, GGML_TYPE_Q3_K,
          GGML_TYPE_Q2_K },
        { "Q3_K_S", 4, GGML_TYPE_Q3_K, GGML_TYPE_Q3_K, GGML_TYPE_Q3_K, GGML_TYPE_Q3_K, GGML_TYPE_Q3_K, GGML_TYPE_Q3_K,
          GGML_TYPE_Q3_K },
        { "Q3_K", 4, GGML_TYPE_Q5_K, GGML_TYPE_Q4_K, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q4_K, GGML_TYPE_Q4_K,
          GGML_TYPE_Q3_K },
        { "Q3_K_L", 4, GGML_TYPE_Q5_K, GGML_TYPE_Q5_K, GGML_TYPE_Q5_K, GGML_TYPE_Q5_K, GGML_TYPE_Q5_K, GGML_TYPE_Q5_K,
          GGML_TYPE_Q3_K },
        { "Q4_K_S", 4, GGML_TYPE_Q5_K, GGML_TYPE_Q5_K, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q4_K, GGML_TYPE_Q4_K,
          GGML_TYPE_Q4_K },
        { "Q5_K_S", 4, GGML_TYPE_Q5_K, GGML_TYPE_Q5_K, GGML_TYPE_Q5_K, GGML_TYPE_Q5_K, GGML_TYPE_Q5_K, GGML_TYPE_Q5_K,
          GGML_TYPE_Q5_K },
        { "IQ4_NL", 4, GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_NL, GGML_TYPE_Q5_K, GGML_TYPE_IQ4_NL,
          GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_NL },
        { "IQ4_XS", 1, GGML_TYPE_Q5_K, GGML_TYPE_Q5_K, GGML_TYPE_Q5_K, GGML_TYPE_Q5_K, GGML_TYPE_IQ4_XS,
          GGML_TYPE_IQ4_XS, GGML_TYPE_IQ4_XS },
    };
    for (const Expected & expected : cases) {
        const TempDir dir;
        auto          options =
            options_for(random_backbone(dir.file("in.gguf"), 16, false, 256, expected.n_head_kv), "", expected.type);
        options.dry_run  = true;
        const auto types = types_of(quantize_file(options));
        CAPTURE(expected.type);
        CHECK(types.at("blk.0.attn_v.weight") == expected.value_0);
        CHECK(types.at("blk.3.attn_v.weight") == expected.value_3);
        CHECK(types.at("blk.9.attn_v.weight") == expected.value_9);
        CHECK(types.at("blk.0.ffn_down.weight") == expected.down_0);
        CHECK(types.at("blk.5.ffn_down.weight") == expected.down_5);
        CHECK(types.at("blk.0.attn_output.weight") == expected.output_0);
        CHECK(types.at("blk.0.attn_q.weight") == expected.query);
        CHECK(types.at("output.weight") == GGML_TYPE_Q6_K);
    }
}

TEST_CASE("importance moves the error to where it matters least, and the mixes know of it") {
    const TempDir dir;
    const auto    in      = random_backbone(dir.file("in.gguf"), 16, true);
    auto          options = options_for(in, dir.file("plain.gguf"), "Q4_0");
    quantize_file(options);
    std::vector<float> weights(256, 0.01f);
    std::fill(weights.begin(), weights.begin() + 64, 100.0f);
    options.importance["blk.5.attn_q.weight"] = weights;
    options.out_path                          = dir.file("weighted.gguf");
    const auto types                          = types_of(quantize_file(options));
    CHECK(types.at("blk.0.ffn_down.weight") == GGML_TYPE_Q4_1);
    CHECK(types.at("blk.5.ffn_down.weight") == GGML_TYPE_Q4_0);

    const auto weighted_error = [&](const std::string & path) {
        const auto         source = GgufReader::open(in);
        const auto         file   = GgufReader::open(path);
        const GgufTensor & from   = *source.find_tensor("blk.5.attn_q.weight");
        const GgufTensor & to     = *file.find_tensor("blk.5.attn_q.weight");
        std::vector<float> values(size_t(from.n_elements()));
        ggml_get_type_traits(to.type)->to_float(to.data, values.data(), from.n_elements());
        double error = 0;
        for (size_t i = 0; i < values.size(); i++) {
            const double difference = values[i] - static_cast<const float *>(from.data)[i];
            error += weights[i % 256] * difference * difference;
        }
        return error;
    };
    CHECK(weighted_error(dir.file("weighted.gguf")) < 0.95 * weighted_error(dir.file("plain.gguf")));

    options.importance["blk.5.attn_q.weight"].pop_back();
    options.force = true;
    CHECK(message_of(options).find("255 inputs, the tensor has 256") != std::string::npos);
}

TEST_CASE("rows that do not fit fall back and are listed") {
    const TempDir dir;
    auto options = options_for(random_backbone(dir.file("in.gguf"), 1, false, 288), dir.file("out.gguf"), "Q4_K_M");
    const auto result = quantize_file(options);
    const auto types  = types_of(result);
    CHECK(types.at("token_embd.weight") == GGML_TYPE_Q5_0);
    CHECK(types.at("output.weight") == GGML_TYPE_Q8_0);
    CHECK(types.at("blk.0.attn_q.weight") == GGML_TYPE_Q5_0);
    CHECK(types.at("blk.0.attn_v.weight") == GGML_TYPE_Q8_0);
    CHECK(result.fallbacks.size() == 5);
    CHECK(result.fallbacks[0].wanted == GGML_TYPE_Q4_K);
    CHECK(GgufReader::open(options.out_path).get_u32("general.file_type") == 15);

    const TempDir other;
    options = options_for(random_backbone(other.file("in.gguf"), 1, false, 40), other.file("out.gguf"), "Q4_0");
    CHECK(types_of(quantize_file(options)).at("blk.0.attn_q.weight") == GGML_TYPE_F16);
}

TEST_CASE("types by pattern") {
    const TempDir dir;
    auto          options = options_for(random_backbone(dir.file("in.gguf"), 2, true), dir.file("out.gguf"), "Q4_0");
    options.overrides     = { { "attn_v", GGML_TYPE_Q8_0 }, { "blk\\.1\\.", GGML_TYPE_F16 } };
    const auto types      = types_of(quantize_file(options));
    CHECK(types.at("blk.0.attn_v.weight") == GGML_TYPE_Q8_0);
    CHECK(types.at("blk.1.attn_v.weight") == GGML_TYPE_Q8_0);
    CHECK(types.at("blk.1.attn_q.weight") == GGML_TYPE_F16);
    CHECK(types.at("blk.1.attn_norm.weight") == GGML_TYPE_F32);
    CHECK(types.at("blk.0.attn_q.weight") == GGML_TYPE_Q4_0);

    options.force     = true;
    options.overrides = { { "atn_v", GGML_TYPE_Q8_0 } };
    CHECK(message_of(options).find("'atn_v' matches no quantizable tensor") != std::string::npos);
    options.overrides = { { "(", GGML_TYPE_Q8_0 } };
    CHECK(message_of(options).find("regular expression") != std::string::npos);
    CHECK_THROWS_AS(parse_tensor_type("q4_k_m"), Error);
    CHECK_THROWS_AS(parse_file_type("q9"), Error);
}

TEST_CASE("quantized files are not quantized again unasked, but go back to F32") {
    const TempDir dir;
    const auto    in = random_backbone(dir.file("in.gguf"), 2, true);
    quantize_file(options_for(in, dir.file("q8.gguf"), "Q8_0"));
    auto again = options_for(dir.file("q8.gguf"), dir.file("q4.gguf"), "Q4_0");
    CHECK(message_of(again).find("--allow-requantize") != std::string::npos);
    CHECK(!fs::exists(dir.file("q4.gguf")));
    again.allow_requantize = true;
    quantize_file(again);
    quantize_file(options_for(dir.file("q8.gguf"), dir.file("f32.gguf"), "F32"));
    quantize_file(options_for(dir.file("f32.gguf"), dir.file("back.gguf"), "Q8_0"));
    // Q8_0 values are exact in F32 and quantize to themselves.
    CHECK(test::read_bytes(dir.file("back.gguf")) == test::read_bytes(dir.file("q8.gguf")));
    CHECK(message_of(options_for(in, dir.file("q8.gguf"), "Q8_0")).find("--force") != std::string::npos);
}

TEST_CASE("in a sidecar the big matrices take the type, the rest stays") {
    const GoldenCase golden("last");
    const auto       result = quantize_file(options_for(golden.sidecar(), golden.file("q8.gguf"), "Q8_0"));
    const auto       types  = types_of(result);
    for (const char * name :
         { "penelope.memory.gru.input.weight", "penelope.memory.gru.hidden.weight", "penelope.readout.gru.input.weight",
           "penelope.readout.gru.hidden.weight", "penelope.readout.proj.weight", "penelope.adapter.down.weight" }) {
        CHECK_MESSAGE(types.at(name) == GGML_TYPE_Q8_0, name);
    }
    CHECK(types.at("penelope.adapter.up.weight") == GGML_TYPE_F16); // rows of 16
    for (const auto & [key, type] : types) {
        const std::string & name = key;
        if (name.find("gru") == std::string::npos && name.find("proj.weight") == std::string::npos &&
            name.find("adapter.down.weight") == std::string::npos &&
            name.find("adapter.up.weight") == std::string::npos) {
            CHECK_MESSAGE(type == GGML_TYPE_F32, name);
        } else if (name.find("bias") != std::string::npos) {
            CHECK_MESSAGE(type == GGML_TYPE_F32, name);
        }
    }
    const auto gguf = GgufReader::open(golden.file("q8.gguf"));
    check_sidecar_tensors(gguf, read_sidecar_config(gguf));

    const auto half = types_of(quantize_file(options_for(golden.sidecar(), golden.file("f16.gguf"), "F16")));
    CHECK(half.at("blk.0.attn_q.weight.lora_a") == GGML_TYPE_F16);
    CHECK(half.at("penelope.time.out.weight") == GGML_TYPE_F32);
}

TEST_CASE("a value that is not finite is refused, and so is one the type cannot hold") {
    const TempDir dir;
    const auto    write = [&](float value) {
        GgufWriter writer(dir.file("in.gguf"), true);
        writer.set_str("general.architecture", "llama");
        writer.set_u32("llama.block_count", 1);
        writer.set_u32("llama.attention.head_count", 1);
        writer.add_tensor("blk.0.attn_q.weight", GGML_TYPE_F32, { 32, 2 });
        writer.begin_data();
        std::vector<float> values(64, 0.5f);
        values[40] = value;
        writer.write_tensor("blk.0.attn_q.weight", values.data(), 256);
        writer.finish();
    };
    const auto refusal = [&](const char * type) {
        return message_of(options_for(dir.file("in.gguf"), dir.file("out.gguf"), type));
    };
    for (const char * type : { "Q8_0", "F16", "F32" }) {
        write(std::nanf(""));
        CHECK(refusal(type).find("'blk.0.attn_q.weight'") != std::string::npos);
        write(-INFINITY);
        CHECK(refusal(type).find("'blk.0.attn_q.weight'") != std::string::npos);
    }
    write(70000.0f);
    CHECK(refusal("F16").find("too large for F16") != std::string::npos);
    CHECK(!fs::exists(dir.file("out.gguf")));
    CHECK(refusal("BF16") == "");
}

TEST_CASE("being interrupted leaves nothing") {
    const TempDir dir;
    auto          options   = options_for(random_backbone(dir.file("in.gguf"), 2, true), dir.file("out.gguf"), "Q4_K");
    int           n         = 0;
    options.stream.progress = [&](const StreamProgress & progress) {
        n++;
        CHECK(progress.bytes_done <= progress.bytes_total);
    };
    options.stream.cancelled = [&] { return n >= 3; };
    try {
        quantize_file(options);
        FAIL("was not cancelled");
    } catch (const Error & e) {
        CHECK(e.kind == ErrorKind::cancelled);
    }
    CHECK(std::distance(fs::directory_iterator(dir.path()), {}) == 1); // the input alone
}
