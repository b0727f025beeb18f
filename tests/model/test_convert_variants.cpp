// The many ways a Hugging Face checkpoint is written down.
#include <doctest/doctest.h>

#include "arch/config.h"
#include "base/error.h"
#include "base/format.h"
#include "gguf/reader.h"
#include "support/errors.h"
#include "support/golden_checkpoint.h"

#include <cstring>
#include <functional>

using namespace penelope;
using test::GoldenCheckpoint;
using test::read_bytes;
using test::says;
namespace fs = std::filesystem;

namespace {

// Writes the tensors of `source` that `keep` selects, in another type.
void rewrite(const SafetensorsReader & source, const fs::path & path, ggml_type type,
             const std::function<bool(const std::string &)> & keep) {
    SafetensorsWriter writer(path.string(), true);
    const auto        st_type = type == GGML_TYPE_F16    ? SafetensorsType::f16
                                : type == GGML_TYPE_BF16 ? SafetensorsType::bf16
                                                         : SafetensorsType::f32;
    for (const auto & tensor : source.tensors()) {
        if (keep(tensor.name)) {
            writer.add_tensor(tensor.name, st_type, tensor.shape);
        }
    }
    writer.begin_data();
    for (const auto & tensor : source.tensors()) {
        if (keep(tensor.name)) {
            const auto        values = source.read_f32(tensor.name);
            std::vector<char> bytes(ggml_row_size(type, tensor.n_elements()));
            if (type == GGML_TYPE_BF16) {
                ggml_fp32_to_bf16_row_ref(values.data(), reinterpret_cast<ggml_bf16_t *>(bytes.data()),
                                          tensor.n_elements());
            } else {
                ggml_quantize_chunk(type, values.data(), bytes.data(), 0, 1, tensor.n_elements(), nullptr);
            }
            writer.write(bytes.data(), bytes.size());
        }
    }
    writer.finish();
}

bool all(const std::string &) {
    return true;
}

} // namespace

TEST_CASE("old rope fields say the same as new ones") {
    const GoldenCheckpoint model("last");
    model.edit("config.json", [](Json & json) {
        json["rope_scaling"]         = json["rope_parameters"];
        json["rope_theta"]           = json["rope_parameters"]["rope_theta"];
        json["rope_scaling"]["type"] = "llama3";
        json["rope_scaling"].erase("rope_type");
        json["rope_scaling"].erase("rope_theta");
        json.erase("rope_parameters");
    });
    model.convert();
    CHECK(model.same_as_golden());
}

TEST_CASE("older configurations of Gemma and Phi say the same as new ones") {
    const GoldenCheckpoint gemma("gemma3");
    gemma.edit("config.json", [](Json & json) {
        json.erase("rope_parameters");
        json.erase("layer_types");
        json["rope_theta"]             = 1000000.0;
        json["rope_local_base_freq"]   = 10000.0;
        json["sliding_window_pattern"] = 6;
    });
    gemma.convert("F32");
    CHECK(gemma.same_as_golden());
    gemma.edit("config.json", [](Json & json) {
        json["rope_scaling"] = { { "rope_type", "linear" }, { "factor", 8.0 } };
    });
    fs::remove(gemma.out());
    const GgufReader longer = gemma.convert("F32");
    CHECK(longer.get_str("gemma3.rope.scaling.type") == "linear");
    CHECK(longer.get_f32("gemma3.rope.scaling.factor") == 8.0f);
    CHECK(read_model_config(longer).rope_factor == 8.0f);

    const GoldenCheckpoint phi("phi3");
    phi.edit("config.json", [](Json & json) {
        const Json rope = json["rope_parameters"];
        json.erase("rope_parameters");
        json["rope_theta"]            = rope["rope_theta"];
        json["partial_rotary_factor"] = rope["partial_rotary_factor"];
        json["rope_scaling"]          = { { "type", "su" },
                                          { "long_factor", rope["long_factor"] },
                                          { "short_factor", rope["short_factor"] } };
    });
    phi.convert("F32");
    CHECK(phi.same_as_golden());
}

TEST_CASE("Mistral is converted for contexts no longer than its window") {
    const GoldenCheckpoint model("middle");
    model.edit("config.json", [](Json & json) { json["model_type"] = "mistral"; });
    model.convert("F32");
    CHECK(model.same_as_golden());
    model.edit("config.json", [](Json & json) { json["sliding_window"] = 128; });
    std::filesystem::remove(model.out());
    CHECK(model.convert("F32").get_u32("llama.context_length") == 128);
}

TEST_CASE("head_dim may be left out") {
    const GoldenCheckpoint model("last");
    model.edit("config.json", [](Json & json) { json.erase("head_dim"); });
    const auto gguf = model.convert();
    CHECK(!gguf.has("llama.attention.key_length"));
    CHECK(gguf.get_u32("llama.rope.dimension_count") == 16);
    const auto golden = GgufReader::open(model.golden().backbone());
    for (const auto & tensor : golden.tensors()) {
        CHECK(std::memcmp(gguf.find_tensor(tensor.name)->data, tensor.data, tensor.size) == 0);
    }
}

TEST_CASE("sources in F16 and BF16 keep their type unless asked") {
    for (const ggml_type type : { GGML_TYPE_F16, GGML_TYPE_BF16 }) {
        const GoldenCheckpoint model("middle");
        rewrite(SafetensorsReader::open(model.golden().source("model/model.safetensors")),
                model.path() / "model.safetensors", type, all);
        const auto source = SafetensorsReader::open((model.path() / "model.safetensors").string());
        {
            const auto   gguf   = model.convert();
            const auto * tensor = gguf.find_tensor("blk.1.ffn_up.weight");
            CHECK(tensor->type == type);
            CHECK(std::memcmp(tensor->data, source.get("model.layers.1.mlp.up_proj.weight").data, tensor->size) == 0);
            CHECK(gguf.find_tensor("output_norm.weight")->type == GGML_TYPE_F32);
            CHECK(gguf.get_u32("general.file_type") == (type == GGML_TYPE_F16 ? 1 : 32));
        }
        fs::remove(model.out());
        const auto gguf     = model.convert("F32");
        const auto expected = source.read_f32("model.layers.1.mlp.up_proj.weight");
        CHECK(std::memcmp(gguf.find_tensor("blk.1.ffn_up.weight")->data, expected.data(), expected.size() * 4) == 0);
    }
}

TEST_CASE("several shards, with and without an index, under any name") {
    const GoldenCheckpoint model("last");
    const auto             source = SafetensorsReader::open(model.golden().source("model/model.safetensors"));
    fs::remove(model.path() / "model.safetensors");
    const auto first = [](const std::string & name) {
        return name.find("layers.1") != std::string::npos || name.find("embed") != std::string::npos;
    };
    rewrite(source, model.path() / "model-00001-of-00002.safetensors", GGML_TYPE_F32, first);
    rewrite(source, model.path() / "model.safetensors-00002-of-00002.safetensors", GGML_TYPE_F32,
            [&](const std::string & name) { return !first(name); });
    model.convert();
    CHECK(model.same_as_golden());

    Json map;
    for (const auto & tensor : source.tensors()) {
        map[tensor.name] =
            first(tensor.name) ? "model-00001-of-00002.safetensors" : "model.safetensors-00002-of-00002.safetensors";
    }
    model.edit("model.safetensors.index.json", [&](Json & json) { json["weight_map"] = map; });
    // A stray file that is not in the index is not looked at.
    rewrite(source, model.path() / "consolidated.safetensors", GGML_TYPE_F32, all);
    fs::remove(model.out());
    model.convert();
    CHECK(model.same_as_golden());

    fs::remove(model.out());
    fs::remove(model.path() / "model.safetensors.index.json");
    CHECK(says(model.refusal(), "is in"));
    fs::remove(model.path() / "consolidated.safetensors");
    map["model.layers.9.extra"] = "model-00001-of-00002.safetensors";
    model.edit("model.safetensors.index.json", [&](Json & json) { json["weight_map"] = map; });
    CHECK(says(model.refusal(), "of the index is in no file"));
    map["model.norm.weight"] = "../other/model.safetensors";
    model.edit("model.safetensors.index.json", [&](Json & json) { json["weight_map"] = map; });
    CHECK(says(model.refusal(), "names no file of the directory"));
}

TEST_CASE("tokenizers in other spellings") {
    const GoldenCheckpoint model("last");
    SUBCASE("merges as strings") {
        model.edit("tokenizer.json", [](Json & json) {
            for (auto & merge : json["model"]["merges"]) {
                merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
            }
        });
    }
    SUBCASE("a pattern that removes what it does not match") {
        model.edit("tokenizer.json", [](Json & json) {
            json["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed";
            json["pre_tokenizer"]["pretokenizers"][0]["invert"]   = true;
        });
    }
    SUBCASE("an added token only in tokenizer_config.json") {
        model.edit("tokenizer.json", [](Json & json) { json["added_tokens"].erase(1); });
        model.edit("tokenizer_config.json", [](Json & json) {
            json["added_tokens_decoder"]["438"] = { { "content", "<|end_of_text|>" }, { "special", true } };
        });
    }
    SUBCASE("special tokens as objects, and in special_tokens_map.json") {
        model.edit("tokenizer_config.json", [](Json & json) {
            json["bos_token"] = { { "content", "<|begin_of_text|>" }, { "lstrip", false } };
            json.erase("eos_token");
        });
        model.edit("special_tokens_map.json", [](Json & json) { json["eos_token"] = "<|end_of_text|>"; });
    }
    SUBCASE("special tokens only as ids in config.json") {
        fs::remove(model.path() / "tokenizer_config.json");
    }
    model.convert();
    CHECK(model.same_as_golden());
}

TEST_CASE("token kinds, gaps, templates and ends of generation") {
    const GoldenCheckpoint model("last");
    model.edit("tokenizer.json", [](Json & json) {
        const auto last  = json["model"]["vocab"];
        Json       vocab = Json::object();
        for (const auto & [text, id] : last.items()) {
            if (id != 436 && id != 435 && id != 434) {
                vocab[text] = id;
            }
        }
        json["model"]["vocab"] = vocab;
        Json merges            = Json::array();
        for (const auto & merge : json["model"]["merges"]) {
            if (vocab.contains(merge[0].get<std::string>() + merge[1].get<std::string>())) {
                merges.push_back(merge);
            }
        }
        json["model"]["merges"] = merges;
        json["added_tokens"].push_back({ { "id", 434 }, { "content", "<think>" }, { "special", false } });
        json["added_tokens"].push_back({ { "id", 435 }, { "content", "<|eot_id|>" }, { "special", false } });
    });
    model.edit("config.json", [](Json & json) {
        json["eos_token_id"] = { 438, 435 };
        json["pad_token_id"] = 434;
    });
    model.edit("tokenizer_config.json", [](Json & json) {
        json["add_bos_token"] = false;
        json["chat_template"] = Json::array({ { { "name", "default" }, { "template", "{{ a }}" } },
                                              { { "name", "tool_use" }, { "template", "{{ b }}" } } });
    });
    const auto gguf   = model.convert();
    const auto tokens = gguf.get_str_array("tokenizer.ggml.tokens");
    const auto types  = gguf.get_i32_array("tokenizer.ggml.token_type");
    CHECK(tokens[434] == "<think>");
    CHECK(types[434] == 4);
    CHECK(types[435] == 3); // looks special
    CHECK(tokens[436] == "[PAD436]");
    CHECK(types[436] == 5);
    CHECK(gguf.get_u32("tokenizer.ggml.eos_token_id") == 438);
    CHECK(gguf.get_u32("tokenizer.ggml.eot_token_id") == 435);
    CHECK(gguf.get_u32("tokenizer.ggml.padding_token_id") == 434);
    CHECK(gguf.find_bool("tokenizer.ggml.add_bos_token") == false);
    CHECK(gguf.get_str("tokenizer.chat_template") == "{{ a }}");
    CHECK(gguf.get_str("tokenizer.chat_template.tool_use") == "{{ b }}");
    CHECK(gguf.get_str_array("tokenizer.chat_templates") == std::vector<std::string>{ "tool_use" });
}

TEST_CASE("the model card gives name, licence and origin") {
    const GoldenCheckpoint model("last");
    std::ofstream(model.path() / "README.md")
        << "---\nlicense: llama3.2\nlicense_link: \"https://example.org/l\"\nbase_model:\n- meta-llama/Llama-3.2-1B\n"
           "- other\ntags: [latent, 'reasoning']\nlanguage:\n  - en\nmodel_name: Tiny Llama\nwidget:\n"
           "  - text: \"hello\"\n---\n# Title\nlicense: mit\n";
    std::ofstream(model.path() / "chat_template.jinja") << "{{ jinja }}";
    const auto gguf = model.convert();
    CHECK(gguf.get_str("general.name") == "Tiny Llama");
    CHECK(gguf.get_str("general.license") == "llama3.2");
    CHECK(gguf.get_str("general.license.link") == "https://example.org/l");
    CHECK(gguf.get_u32("general.base_model.count") == 2);
    CHECK(gguf.get_str("general.base_model.0.name") == "Llama-3.2-1B");
    CHECK(gguf.get_str("general.base_model.0.organization") == "meta-llama");
    CHECK(gguf.get_str("general.base_model.1.name") == "other");
    CHECK(gguf.get_str_array("general.tags") == std::vector<std::string>{ "latent", "reasoning" });
    CHECK(gguf.get_str_array("general.languages") == std::vector<std::string>{ "en" });
    CHECK(gguf.get_str("tokenizer.chat_template") == "{{ jinja }}");
}

TEST_CASE("a model card of any length gives a name and lists that can be written") {
    const GoldenCheckpoint model("last");
    std::string            datasets = "a/b";
    for (int i = 0; i < 40000; i++) {
        datasets += ",a/b";
    }
    std::ofstream(model.path() / "README.md")
        << "---\nmodel_name: -" << std::string(300000, '1') << "\ndatasets: [" << datasets << "]\n---\n";
    CHECK(model.convert().get_u32("general.dataset.count") == 64);

    ConvertOptions options;
    options.dir            = model.path().string();
    options.out_path       = model.dir().path().string();
    const std::string name = fs::path(convert_directory(options).path).filename().string();
    CHECK(name.size() == 255);
    CHECK(ends_with(name, "1-287K-F32.gguf"));
}
