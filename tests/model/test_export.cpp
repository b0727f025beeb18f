// Ways back: Penelope and PEFT directories, LoRA, merged backbone, bundle, Hugging Face checkpoint. F32 comes back bit
// by bit.
#include <doctest/doctest.h>

#include "arch/architecture.h"
#include "base/error.h"
#include "convert/hf_export.h"
#include "gguf/reader.h"
#include "sidecar/sidecar.h"
#include "support/difference.h"
#include "support/files.h"
#include "support/golden.h"
#include "text/tokenizer.h"

#include <cmath>
#include <cstring>

using namespace penelope;
using test::GoldenCase;
using test::read_bytes;
using test::TempDir;
namespace fs = std::filesystem;

namespace {

FileResult export_as(const std::string & as, const std::string & in, const std::string & out,
                     const std::string & base = "") {
    ExportOptions options;
    options.as        = as;
    options.in_path   = in;
    options.out_path  = out;
    options.base_path = base;
    return export_sidecar(options);
}

FileResult convert(const std::string & dir, const std::string & out, const std::string & base = "",
                   const std::string & type = "F32") {
    ConvertOptions options;
    options.dir       = dir;
    options.out_path  = out;
    options.base_path = base;
    options.type      = type;
    return convert_directory(options);
}

std::vector<std::string> entries(const fs::path & dir) {
    std::vector<std::string> names;
    for (const auto & entry : fs::directory_iterator(dir)) {
        names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

bool same_tensors(const GgufReader & a, const GgufReader & b) {
    bool same = a.tensors().size() == b.tensors().size();
    for (const auto & tensor : a.tensors()) {
        const GgufTensor * other = b.find_tensor(tensor.name);
        same                     = same && other && other->type == tensor.type && other->size == tensor.size &&
               std::memcmp(other->data, tensor.data, tensor.size) == 0;
    }
    return same;
}

} // namespace

TEST_CASE("directory -> sidecar -> directory is byte-exact") {
    for (const std::string & name : test::kTrajectoryCases) {
        const GoldenCase golden(name);
        const TempDir    dir;
        export_as("penelope", golden.sidecar(), dir.file("penelope"), golden.backbone());
        CHECK(entries(dir.path()) == std::vector<std::string>{ "penelope" });
        CHECK(entries(dir.path() / "penelope") ==
              std::vector<std::string>{ "README.md", "lora", "penelope.safetensors", "penelope_config.json" });
        CHECK(read_bytes(dir.path() / "penelope/penelope.safetensors") ==
              read_bytes(golden.source("penelope/penelope.safetensors")));
        CHECK(read_bytes(dir.path() / "penelope/lora/adapter_model.safetensors") ==
              read_bytes(golden.source("lora/adapter_model.safetensors")));
        Json written = read_json_file(dir.file("penelope/penelope_config.json"));
        CHECK(written["base"].erase("tokens_sha256") == 1); // what the source did not say
        CHECK(written["base"].erase("name") == 1);
        CHECK(written == read_json_file(golden.source("penelope/penelope_config.json")));

        convert(dir.file("penelope"), dir.file("again.gguf"), golden.backbone());
        CHECK(read_bytes(dir.file("again.gguf")) == read_bytes(golden.sidecar()));
    }
}

TEST_CASE("LoRA pairs leave as PEFT and as llama.cpp LoRA") {
    const GoldenCase golden("middle");
    const TempDir    dir;
    for (const std::string & source : { golden.sidecar(), golden.lora() }) {
        export_as("peft", source, dir.file("lora"), golden.backbone());
        CHECK(read_bytes(dir.path() / "lora/adapter_model.safetensors") ==
              read_bytes(golden.source("lora/adapter_model.safetensors")));
        const Json config   = read_json_file(dir.file("lora/adapter_config.json")),
                   original = read_json_file(golden.source("lora/adapter_config.json"));
        for (const char * field : { "r", "lora_alpha", "peft_type", "task_type", "bias", "fan_in_fan_out", "use_rslora",
                                    "use_dora", "rank_pattern" }) {
            const bool same = config.contains(field) ? config[field] == original[field]
                                                     : !original.contains(field) || original[field].is_null();
            CHECK_MESSAGE(same, field);
        }
        CHECK(config["target_modules"].size() == 7);
        convert(dir.file("lora"), dir.file("lora.gguf"), golden.backbone());
        CHECK(same_tensors(GgufReader::open(dir.file("lora.gguf")), GgufReader::open(golden.lora())));
        CHECK(GgufReader::open(dir.file("lora.gguf")).get_f32("adapter.lora.alpha") == 8.0f);
        fs::remove_all(dir.file("lora"));
        fs::remove(dir.file("lora.gguf"));
    }
    export_as("lora", golden.sidecar(), dir.file("only.gguf"));
    const auto lora = GgufReader::open(dir.file("only.gguf"));
    CHECK(same_tensors(lora, GgufReader::open(golden.lora())));
    CHECK(lora.get_str("adapter.type") == "lora");
    CHECK(lora.get_str("general.type") == "adapter");
    CHECK(lora.get_str("general.architecture") == "llama");
    CHECK(lora.get_f32("adapter.lora.alpha") == 8.0f);
    CHECK(!lora.has("penelope.version"));
}

TEST_CASE("merging adds alpha / rank * B A") {
    const GoldenCase golden("full");
    const TempDir    dir;
    export_as("merged", golden.sidecar(), dir.file("merged.gguf"), golden.backbone());
    const auto merged = GgufReader::open(dir.file("merged.gguf")), base = GgufReader::open(golden.backbone()),
               lora = GgufReader::open(golden.lora());
    CHECK(merged.tensors().size() == base.tensors().size());
    CHECK(merged.get_str("general.type") == "model");
    size_t n_changed = 0;
    for (const auto & tensor : base.tensors()) {
        const GgufTensor * a = lora.find_tensor(tensor.name + ".lora_a");
        const auto *       w = static_cast<const float *>(tensor.data);
        const auto *       m = static_cast<const float *>(merged.find_tensor(tensor.name)->data);
        if (!a) {
            CHECK(std::memcmp(w, m, tensor.size) == 0);
            continue;
        }
        n_changed++;
        const auto *     pa = static_cast<const float *>(a->data);
        const auto *     pb = static_cast<const float *>(lora.find_tensor(tensor.name + ".lora_b")->data);
        test::Difference worst;
        for (int64_t o = 0; o < tensor.ne[1]; o++) {
            for (int64_t i = 0; i < tensor.ne[0]; i++) {
                double sum = w[o * tensor.ne[0] + i];
                for (int64_t r = 0; r < 4; r++) {
                    sum += 2.0 * double(pb[o * 4 + r]) * double(pa[r * tensor.ne[0] + i]);
                }
                const int64_t at = o * tensor.ne[0] + i;
                worst.add(m[at], sum, size_t(at));
            }
        }
        CHECK(worst < 1e-6);
    }
    CHECK(n_changed == 28);

    ExportOptions options;
    options.as        = "merged";
    options.in_path   = golden.lora();
    options.base_path = golden.backbone();
    options.out_path  = dir.file("q8.gguf");
    options.type      = "Q8_0";
    export_sidecar(options);
    CHECK(GgufReader::open(dir.file("q8.gguf")).find_tensor("blk.0.attn_q.weight")->type == GGML_TYPE_Q8_0);
}

TEST_CASE("a bundle holds both and lets both go again") {
    const GoldenCase golden("last");
    const TempDir    dir;
    export_as("bundle", golden.sidecar(), dir.file("bundle.gguf"), golden.backbone());
    const auto bundle = GgufReader::open(dir.file("bundle.gguf"));
    CHECK(is_bundle(bundle));
    CHECK(!is_sidecar(bundle));
    CHECK(bundle.get_str("general.architecture") == "llama");
    const SidecarConfig config = read_sidecar_config(bundle);
    check_sidecar_tensors(bundle, config);
    check_base(config, read_base_info(bundle));
    CHECK(config.interval_start == 4);
    CHECK(bundle.get_str_array("tokenizer.ggml.tokens").size() == 439);
    const auto backbone = GgufReader::open(golden.backbone());
    CHECK(bundle.tensors().size() == backbone.tensors().size() + GgufReader::open(golden.sidecar()).tensors().size());

    export_as("penelope", dir.file("bundle.gguf"), dir.file("penelope"));
    CHECK(read_bytes(dir.path() / "penelope/penelope.safetensors") ==
          read_bytes(golden.source("penelope/penelope.safetensors")));
    CHECK(read_bytes(dir.path() / "penelope/lora/adapter_model.safetensors") ==
          read_bytes(golden.source("lora/adapter_model.safetensors")));
    export_as("hf", dir.file("bundle.gguf"), dir.file("model"));
    CHECK(read_bytes(dir.path() / "model/model.safetensors") == read_bytes(golden.source("model/model.safetensors")));
    export_as("merged", dir.file("bundle.gguf"), dir.file("merged.gguf"));
    const auto merged = GgufReader::open(dir.file("merged.gguf"));
    CHECK(merged.tensors().size() == backbone.tensors().size());
    CHECK(!merged.has("penelope.version"));
    CHECK(!is_bundle(merged));

    QuantizeOptions options;
    options.in_path  = dir.file("bundle.gguf");
    options.out_path = dir.file("q8.gguf");
    options.type     = "Q8_0";
    quantize_file(options);
    const auto quantized = GgufReader::open(dir.file("q8.gguf"));
    CHECK(is_bundle(quantized));
    CHECK(quantized.find_tensor("blk.0.ffn_up.weight")->type == GGML_TYPE_Q8_0);
    CHECK(quantized.find_tensor("penelope.memory.gru.input.weight")->type == GGML_TYPE_Q8_0);
    CHECK(quantized.find_tensor("penelope.memory.anchor")->type == GGML_TYPE_F32);
}

TEST_CASE("backbone -> Hugging Face -> backbone is byte-exact") {
    for (const std::string & name : test::kTrajectoryCases) {
        const GoldenCase golden(name);
        const TempDir    dir;
        export_as("hf", golden.backbone(), dir.file("model"));
        // Norms stored as 1 + x lose the last bits of x in F32; model.hybrid looks at them.
        const bool is_exact = get_architecture(GgufReader::open(golden.backbone())).norms == ValueTransform::same;
        CHECK((read_bytes(dir.path() / "model/model.safetensors") ==
               read_bytes(golden.source("model/model.safetensors"))) == is_exact);
        const Json config   = read_json_file(dir.file("model/config.json")),
                   original = read_json_file(golden.source("model/config.json"));
        for (const char * field :
             { "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
               "head_dim", "max_position_embeddings", "rms_norm_eps", "vocab_size", "tie_word_embeddings",
               "bos_token_id", "eos_token_id", "pad_token_id", "hidden_act", "model_type", "architectures" }) {
            const bool same = config.contains(field) ? config[field] == original[field]
                                                     : !original.contains(field) || original[field].is_null();
            CHECK_MESSAGE(same, field);
        }
        const Json & theta_owner = config.contains("rope_parameters") ? config["rope_parameters"] : config;
        const Json & rope        = original["rope_parameters"].contains("full_attention")
                                       ? original["rope_parameters"]["full_attention"]
                                       : original["rope_parameters"];
        CHECK(theta_owner["rope_theta"] == rope["rope_theta"]);
        CHECK(config.contains("rope_scaling") == (rope["rope_type"] != "default"));
        if (config.contains("rope_scaling")) {
            for (const char * field : { "rope_type", "factor", "low_freq_factor", "high_freq_factor", "short_factor",
                                        "long_factor", "original_max_position_embeddings" }) {
                const Json & owner = config["rope_scaling"].contains(field) ? config["rope_scaling"] : config;
                CHECK_MESSAGE(owner.value(field, Json()) == rope.value(field, Json()), field);
            }
        }
        const Json tokenizer = read_json_file(dir.file("model/tokenizer.json")),
                   source    = read_json_file(golden.source("model/tokenizer.json"));
        CHECK(tokenizer["model"]["vocab"] == source["model"]["vocab"]);
        CHECK(tokenizer["model"]["merges"] == source["model"]["merges"]);
        CHECK(tokenizer["added_tokens"] == source["added_tokens"]);
        CHECK(tokenizer["pre_tokenizer"] == source["pre_tokenizer"]);

        convert(dir.file("model"), dir.file("again.gguf"));
        CHECK(read_bytes(dir.file("again.gguf")) == read_bytes(golden.backbone()));
    }
}

TEST_CASE("rope scaling is found again from its divisors") {
    const std::tuple<Llama3RopeScaling, double, uint32_t> cases[] = {
        { { 32.0, 1.0, 4.0, 8192.0 }, 500000.0, 64 },
        { { 8.0, 1.0, 4.0, 8192.0 }, 500000.0, 128 },
        { { 8.0, 1.0, 4.0, 64.0 }, 10000.0, 16 },
        { { 4.0, 1.0, 2.0, 2048.0 }, 10000.0, 128 },
    };
    for (const auto & [scaling, theta, head_dim] : cases) {
        const auto factors = llama3_rope_factors(scaling, theta, head_dim);
        const auto found   = recover_llama3_scaling(factors, theta, head_dim);
        CHECK(llama3_rope_factors(found, theta, head_dim) == factors);
        CHECK(found.original_context == scaling.original_context);
    }
    CHECK_THROWS_AS(recover_llama3_scaling({ 1.0f, 5.0f, 2.0f, 8.0f }, 10000.0, 8), Error);
}

TEST_CASE("existing files are kept unless told, and failures leave nothing") {
    const GoldenCase golden("last"), other("full");
    const TempDir    dir;
    export_as("hf", golden.backbone(), dir.file("model"));
    CHECK_THROWS_AS(export_as("hf", golden.backbone(), dir.file("model")), Error);
    dir.write("model/notes.txt", "mine");
    ExportOptions options;
    options.as       = "hf";
    options.in_path  = other.backbone();
    options.out_path = dir.file("model");
    options.force    = true;
    export_sidecar(options);
    CHECK(read_bytes(dir.path() / "model/notes.txt") == "mine");
    CHECK(read_bytes(dir.path() / "model/model.safetensors") == read_bytes(other.source("model/model.safetensors")));

    CHECK_THROWS_AS(export_as("penelope", golden.sidecar(), dir.file("p"), other.backbone()), Error);
    CHECK_THROWS_AS(export_as("penelope", golden.sidecar(), dir.file("p")), Error);
    CHECK_THROWS_AS(export_as("bundle", golden.sidecar(), dir.file("b.gguf"), other.backbone()), Error);
    CHECK_THROWS_AS(export_as("merged", golden.sidecar(), dir.file("m.gguf")), Error);
    CHECK_THROWS_AS(export_as("poem", golden.sidecar(), dir.file("x")), Error);
    CHECK_THROWS_AS(export_as("lora", golden.backbone(), dir.file("l.gguf")), Error);
    options.out_path         = dir.file("stopped");
    options.stream.cancelled = [] { return true; };
    CHECK_THROWS_AS(export_sidecar(options), Error);
    CHECK(entries(dir.path()) == std::vector<std::string>{ "model" });
}

TEST_CASE("SmolLM2 goes to F32 safetensors and comes back the same" * doctest::skip(test::lacks_smollm2())) {
    const TempDir dir;
    export_as("hf", test::smollm2_path(), dir.file("smollm2"));
    convert(dir.file("smollm2"), dir.file("again.gguf"));
    QuantizeOptions options;
    options.in_path  = test::smollm2_path();
    options.out_path = dir.file("f32.gguf");
    options.type     = "F32";
    quantize_file(options);
    const auto original = GgufReader::open(test::smollm2_path()), again = GgufReader::open(dir.file("again.gguf"));
    CHECK(same_tensors(GgufReader::open(dir.file("f32.gguf")), again)); // the same weights give the same logits
    for (const char * key : { "tokenizer.ggml.tokens", "tokenizer.ggml.merges" }) {
        CHECK_MESSAGE(original.get_str_array(key) == again.get_str_array(key), key);
    }
    CHECK(original.get_i32_array("tokenizer.ggml.token_type") == again.get_i32_array("tokenizer.ggml.token_type"));
    CHECK(original.get_str("tokenizer.ggml.pre") == again.get_str("tokenizer.ggml.pre"));
    CHECK(original.get_str("tokenizer.chat_template") == again.get_str("tokenizer.chat_template"));
    for (const char * key :
         { "llama.block_count", "llama.embedding_length", "llama.feed_forward_length", "llama.attention.head_count",
           "llama.attention.head_count_kv", "llama.context_length", "llama.rope.dimension_count", "llama.vocab_size",
           "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id" }) {
        CHECK_MESSAGE(original.get_u32(key) == again.get_u32(key), key);
    }
    CHECK(original.get_f32("llama.rope.freq_base") == again.get_f32("llama.rope.freq_base"));
    CHECK(original.get_f32("llama.attention.layer_norm_rms_epsilon") ==
          again.get_f32("llama.attention.layer_norm_rms_epsilon"));
    CHECK(Tokenizer::from_gguf(original).adds_bos() == Tokenizer::from_gguf(again).adds_bos());
}
