// PEFT and Penelope directories to GGUF: keys, tensors, scales, and what is refused.
#include <doctest/doctest.h>

#include "base/error.h"
#include "gguf/reader.h"
#include "sidecar/sidecar.h"
#include "support/errors.h"
#include "support/golden.h"

#include <cmath>
#include <cstring>

using namespace penelope;
using test::GoldenCase;
using test::says;
using test::TempDir;
namespace fs = std::filesystem;

namespace {

std::string message_of(const ConvertOptions & options) {
    try {
        convert_directory(options);
    } catch (const Error & e) {
        return e.message() + " | " + e.hint;
    }
    return "";
}

void edit_json(const fs::path & path, const Json & changes) {
    Json json = read_json_file(path.string());
    json.update(changes);
    std::ofstream(path) << dump_json(json);
}

ConvertOptions options_for(const std::string & dir, const std::string & out, const std::string & base) {
    ConvertOptions options;
    options.dir       = dir;
    options.out_path  = out;
    options.base_path = base;
    return options;
}

} // namespace

TEST_CASE("a PEFT directory becomes a strict llama.cpp LoRA") {
    const GoldenCase golden("last");
    const auto       gguf   = GgufReader::open(golden.lora());
    const auto       source = SafetensorsReader::open(golden.source("lora/adapter_model.safetensors"));
    CHECK(gguf.get_str("general.type") == "adapter");
    CHECK(gguf.get_str("general.architecture") == "llama");
    CHECK(gguf.get_str("adapter.type") == "lora");
    CHECK(gguf.get_f32("adapter.lora.alpha") == 8.0f);
    CHECK(gguf.tensors().size() == source.tensors().size());
    for (const auto & tensor : gguf.tensors()) {
        CHECK((tensor.name.find(".weight.lora_a") != std::string::npos ||
               tensor.name.find(".weight.lora_b") != std::string::npos));
    }

    const std::string peft = "base_model.model.model.layers.2.";
    const auto        same = [&](const char * to, const std::string & from, std::vector<int64_t> ne) {
        const auto expected = source.read_f32(from);
        CHECK(std::memcmp(gguf.get_tensor(to, ne).data, expected.data(), expected.size() * 4) == 0);
    };
    same("blk.2.ffn_down.weight.lora_a", peft + "mlp.down_proj.lora_A.weight", { 160, 4 });
    same("blk.2.ffn_down.weight.lora_b", peft + "mlp.down_proj.lora_B.weight", { 4, 64 });
    same("blk.2.attn_q.weight.lora_a", peft + "self_attn.q_proj.lora_A.weight", { 64, 4 });
    same("blk.2.attn_v.weight.lora_b", peft + "self_attn.v_proj.lora_B.weight", { 4, 32 });
    // The B of q and k follow the rows of their weights: row 1 of the first head comes from row D/2 = 8.
    const auto    b      = source.read_f32(peft + "self_attn.k_proj.lora_B.weight");
    const float * actual = static_cast<const float *>(gguf.get_tensor("blk.2.attn_k.weight.lora_b", { 4, 32 }).data);
    CHECK(std::memcmp(actual + 1 * 4, b.data() + 8 * 4, 16) == 0);
    CHECK(std::memcmp(actual + 2 * 4, b.data() + 1 * 4, 16) == 0);
    CHECK(std::memcmp(actual + (16 + 15) * 4, b.data() + (16 + 15) * 4, 16) == 0);
}

TEST_CASE("ranks and alphas per module, and rslora, end in the same product") {
    const GoldenCase golden("full");
    const TempDir    dir;
    fs::copy(golden.source("lora"), dir.path() / "lora");
    const fs::path config = dir.path() / "lora" / "adapter_config.json";
    const auto     source = SafetensorsReader::open(golden.source("lora/adapter_model.safetensors"));
    const auto     peft_b = source.read_f32("base_model.model.model.layers.1.mlp.up_proj.lora_B.weight");

    SUBCASE("alpha_pattern") {
        edit_json(config, { { "alpha_pattern", { { "layers.1.mlp.up_proj", 12 } } } });
        convert_directory(options_for((dir.path() / "lora").string(), dir.file("l.gguf"), golden.backbone()));
        const auto    gguf = GgufReader::open(dir.file("l.gguf"));
        const float * b    = static_cast<const float *>(gguf.get_tensor("blk.1.ffn_up.weight.lora_b", { 4, 128 }).data);
        const float * c    = static_cast<const float *>(gguf.get_tensor("blk.0.ffn_up.weight.lora_b", { 4, 128 }).data);
        CHECK(gguf.get_f32("adapter.lora.alpha") == 8.0f);
        CHECK(b[5] == peft_b[5] * 1.5f);
        CHECK(c[5] == source.read_f32("base_model.model.model.layers.0.mlp.up_proj.lora_B.weight")[5]);
    }
    SUBCASE("use_rslora") {
        edit_json(config, { { "use_rslora", true } });
        convert_directory(options_for((dir.path() / "lora").string(), dir.file("l.gguf"), golden.backbone()));
        const auto gguf = GgufReader::open(dir.file("l.gguf"));
        CHECK(gguf.get_f32("adapter.lora.alpha") == 16.0f); // 8 / sqrt(4) = 16 / 4
        CHECK(static_cast<const float *>(gguf.get_tensor("blk.1.ffn_up.weight.lora_b", { 4, 128 }).data)[5] ==
              peft_b[5]);
    }
    SUBCASE("rank_pattern must agree with the weights") {
        edit_json(config, { { "rank_pattern", { { "up_proj", 8 } } } });
        CHECK(says(message_of(options_for((dir.path() / "lora").string(), dir.file("l.gguf"), golden.backbone())),
                   "expected [8, 64]"));
    }
    SUBCASE("what a pair cannot express") {
        const std::pair<Json, const char *> cases[] = {
            { { { "use_dora", true } }, "use_dora is not supported" },
            { { { "bias", "all" } }, "biases are not supported" },
            { { { "peft_type", "LOHA" } }, "peft_type is not LORA" },
            { { { "modules_to_save", { "lm_head" } } }, "modules_to_save is not supported" },
            { { { "fan_in_fan_out", true } }, "fan_in_fan_out is not supported" },
            { { { "r", 1e300 } }, "a rank is not a whole number from 1 to 1048576" },
            { { { "r", 0 } }, "a rank is not a whole number" },
            { { { "r", 4.5 } }, "a rank is not a whole number" },
            { { { "lora_alpha", 1e300 } }, "lora_alpha is not a positive number" },
            { { { "lora_alpha", 0 } }, "lora_alpha is not a positive number" },
            { { { "rank_pattern", { { std::string(200000, 'a'), 4 } } } }, "at most 1000 are allowed" },
            { { { "rank_pattern", { { std::string(400, '(') + std::string(400, ')'), 4 } } } }, "has the pattern" },
            { { { "rank_pattern", { { "(.*)*(.*)*(.*)*(.*)*[!?]", 4 } } } }, "cannot be searched" },
            { { { "alpha_pattern", { { "up_proj", 1e300 } } } }, "has a value that is not a positive number" },
        };
        for (const auto & [change, expected] : cases) {
            fs::copy_file(golden.source("lora/adapter_config.json"), config, fs::copy_options::overwrite_existing);
            edit_json(config, change);
            CHECK(says(message_of(options_for((dir.path() / "lora").string(), dir.file("l.gguf"), golden.backbone())),
                       expected));
            CHECK(!fs::exists(dir.file("l.gguf")));
        }
    }
}

TEST_CASE("a tensor whose name is long is named as one that does not belong there") {
    const GoldenCase golden("full");
    const TempDir    dir;
    fs::copy(golden.source("lora"), dir.path() / "lora");
    SafetensorsWriter writer(dir.file("lora/adapter_model.safetensors"), true);
    writer.add_tensor("base_model.model." + std::string(200000, 'a') + ".lora_A.weight", SafetensorsType::f32, { 1 });
    writer.begin_data();
    const float value = 0;
    writer.write(&value, sizeof value);
    writer.finish();
    CHECK(says(message_of(options_for(dir.file("lora"), dir.file("l.gguf"), golden.backbone())),
               "no such layer in the base model"));
}

TEST_CASE("a Penelope directory and a LoRA become a sidecar") {
    for (const char * name : { "last", "middle", "full", "overwrite" }) {
        const GoldenCase golden(name);
        const auto       gguf   = GgufReader::open(golden.sidecar());
        const auto       source = SafetensorsReader::open(golden.source("penelope/penelope.safetensors"));
        const Json       json   = read_json_file(golden.source("penelope/penelope_config.json"));
        CHECK(is_sidecar(gguf));
        CHECK(!is_bundle(gguf));
        const SidecarConfig config = read_sidecar_config(gguf);
        CHECK(config.method == "penelope");
        CHECK(config.interval_start == json["interval"][0]);
        CHECK(config.interval_end == json["interval"][1]);
        CHECK(config.n_memory == 8);
        CHECK(config.n_readout == 2);
        CHECK(config.k_max == 8);
        CHECK(config.k_default == json["k_default"]);
        CHECK(config.time_width == 32);
        CHECK(config.adapter_width == 16);
        CHECK(config.transition == json["transition"]);
        CHECK(config.prompt_template == "{question}\n");
        CHECK(config.answer_prefix == "### ");
        CHECK(config.task == "golden");
        CHECK(config.lora_alpha == 8.0f);
        CHECK(config.base.tokens_sha256.size() == 64);
        check_sidecar_tensors(gguf, config);
        check_base(config, read_base_info(GgufReader::open(golden.backbone())));

        size_t n_modules = 0;
        for (const auto & shape : module_tensor_shapes(config, 64)) {
            const auto expected = source.read_f32(shape.name);
            CHECK_MESSAGE(
                std::memcmp(gguf.get_tensor(shape.name, shape.ne).data, expected.data(), expected.size() * 4) == 0,
                shape.name);
            n_modules++;
        }
        CHECK(n_modules == source.tensors().size());
        const auto lora = GgufReader::open(golden.lora());
        CHECK(gguf.tensors().size() == n_modules + lora.tensors().size());
        for (const auto & tensor : lora.tensors()) {
            CHECK(std::memcmp(gguf.get_tensor(tensor.name, { tensor.ne[0], tensor.ne[1] }).data, tensor.data,
                              tensor.size) == 0);
        }
    }
}

TEST_CASE("a Coconut directory becomes a sidecar of that method") {
    const GoldenCase    golden("last");
    const auto          gguf   = GgufReader::open(golden.coconut_sidecar());
    const SidecarConfig config = read_sidecar_config(gguf);
    CHECK(config.method == "coconut");
    CHECK(config.k_default == 3);
    CHECK(config.lora_alpha == 8.0f);
    CHECK(!gguf.has("penelope.interval.start"));
    check_sidecar_tensors(gguf, config);
    const auto rows = SafetensorsReader::open(golden.source("coconut.safetensors")).read_f32("coconut.token.rows");
    CHECK(std::memcmp(gguf.get_tensor("coconut.token.rows", { 64, 2 }).data, rows.data(), rows.size() * 4) == 0);
    CHECK(gguf.get_str("general.name") == "model-coconut-golden");
}

TEST_CASE("the module table counts the published 64.08M parameters") {
    SidecarConfig config;
    int64_t       n = 0;
    for (const auto & shape : module_tensor_shapes(config, 2048)) {
        int64_t count = 1;
        for (const int64_t extent : shape.ne) {
            count *= extent;
        }
        n += count;
    }
    CHECK(n == 64080129);
}

TEST_CASE("a sidecar for another base is refused with every difference") {
    const GoldenCase golden("last"), other("full");
    SidecarConfig    config = read_sidecar_config(GgufReader::open(golden.sidecar()));
    BaseInfo         base   = read_base_info(GgufReader::open(other.backbone()));
    base.vocab_size         = 5;
    base.tokens_sha256      = std::string(64, 'a');
    std::string message;
    try {
        check_base(config, base);
    } catch (const Error & e) {
        message = e.message();
    }
    CHECK(says(message, "block_count is 4, the sidecar needs 6"));
    CHECK(says(message, "vocab_size is 5, the sidecar needs 439"));
    CHECK(says(message, "tokens_sha256"));
    CHECK(message.find("embedding_length") == std::string::npos);

    auto options = options_for(golden.source("penelope"), golden.file("x.gguf"), other.backbone());
    CHECK(says(message_of(options), "block_count"));
    options.base_path = "";
    CHECK(says(message_of(options), "--base"));
    CHECK(!fs::exists(golden.file("x.gguf")));
}

TEST_CASE("damaged Penelope directories are refused") {
    const GoldenCase golden("last");
    const TempDir    dir;
    const fs::path   copy = dir.path() / "p";
    fs::copy(golden.source("penelope"), copy);
    const auto options = options_for(copy.string(), dir.file("s.gguf"), golden.backbone());
    const auto config  = copy / "penelope_config.json";

    SUBCASE("interval") {
        edit_json(config, { { "interval", { 4, 7 } } });
        CHECK(says(message_of(options), "interval [4, 7)"));
    }
    SUBCASE("empty interval") {
        edit_json(config, { { "interval", { 4, 4 } } });
        CHECK(says(message_of(options), "interval [4, 4)"));
    }
    SUBCASE("sizes") {
        edit_json(config, { { "memory_count", 9 } });
        CHECK(says(message_of(options), "'penelope.memory.anchor' has shape [8, 64], expected [9, 64]"));
    }
    SUBCASE("k_default") {
        edit_json(config, { { "k_default", 9 } });
        CHECK(says(message_of(options), "k_default 9"));
    }
    SUBCASE("method") {
        edit_json(config, { { "method", "magic" } });
        CHECK(says(message_of(options), "magic"));
    }
    SUBCASE("a value that is not a number") {
        std::string bytes = test::read_bytes(copy / "penelope.safetensors");
        const float nan   = std::nanf("");
        std::memcpy(bytes.data() + bytes.size() - 8, &nan, 4);
        dir.write("p/penelope.safetensors", bytes);
        CHECK(says(message_of(options), "'penelope.time.out.weight': NaN or infinite value"));
    }
    CHECK(!fs::exists(dir.file("s.gguf")));
}
