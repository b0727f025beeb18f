// The ways a Hugging Face checkpoint can be wrong, and a disk that has no room for what it becomes.
#include <doctest/doctest.h>

#include "base/error.h"
#include "base/format.h"
#include "support/errors.h"
#include "support/golden_checkpoint.h"

#include <csignal>
#include <cstring>

#include <sys/resource.h>

using namespace penelope;
using test::GoldenCheckpoint;
using test::n_entries;
using test::read_bytes;
using test::says;
namespace fs = std::filesystem;

TEST_CASE("checkpoints that cannot be converted say why") {
    const GoldenCheckpoint model("last");
    const auto             config = [&](const char * field, const Json & value) {
        model.edit("config.json", [&](Json & json) { json[field] = value; });
    };
    const auto  tokenizer = [&](const std::function<void(Json &)> & change) { model.edit("tokenizer.json", change); };
    std::string expected;
    SUBCASE("model type") {
        config("model_type", "mamba");
        expected = "'mamba' is not supported";
    }
    SUBCASE("rope") {
        config("rope_parameters", { { "rope_type", "yarn" }, { "rope_theta", 1e4 } });
        expected = "'yarn'";
    }
    SUBCASE("activation") {
        config("hidden_act", "gelu");
        expected = "hidden_act";
    }
    SUBCASE("biases") {
        config("attention_bias", true);
        expected = "attention_bias";
    }
    SUBCASE("quantized") {
        config("quantization_config", { { "bits", 4 } });
        expected = "quantized already";
    }
    SUBCASE("shape") {
        config("hidden_size", 32);
        expected = "expected [439, 32]";
    }
    SUBCASE("more layers than there are") {
        config("num_hidden_layers", 7);
        expected = "'model.layers.6.input_layernorm.weight' is missing";
    }
    SUBCASE("fewer layers than there are") {
        config("num_hidden_layers", 5);
        expected = "is not part of a llama model";
    }
    SUBCASE("zero heads") {
        config("num_attention_heads", 0);
        expected = "num_attention_heads";
    }
    SUBCASE("more layers than any model has") {
        config("num_hidden_layers", 2147483647);
        expected = "'num_hidden_layers' is '2147483647', expected 1 to 4096";
    }
    SUBCASE("too many heads") {
        config("num_attention_heads", 1 << 20);
        config("num_key_value_heads", 1 << 20);
        config("head_dim", 4096);
        expected = "1048576 heads of width 4096 exceed the limit of";
    }
    SUBCASE("context") {
        config("max_position_embeddings", 2147483647);
        expected = "'max_position_embeddings' is '2147483647'";
    }
    SUBCASE("epsilon") {
        config("rms_norm_eps", 1e300);
        expected = "'rms_norm_eps' is '1e+300', which is out of range";
    }
    SUBCASE("rotation") {
        config("rope_parameters", { { "rope_type", "default" }, { "rope_theta", 1e300 } });
        expected = "'rope_theta' is '1e+300', which is out of range";
    }
    SUBCASE("scaling of the rotation") {
        config("rope_parameters", { { "rope_type", "llama3" },
                                    { "rope_theta", 1e4 },
                                    { "factor", 1e-300 },
                                    { "low_freq_factor", 1 },
                                    { "high_freq_factor", 4 },
                                    { "original_max_position_embeddings", 8192 } });
        expected = "'factor' is '1e-300'";
    }
    SUBCASE("odd grouping") {
        config("num_key_value_heads", 3);
        expected = "num_key_value_heads";
    }
    SUBCASE("no weights") {
        fs::remove(model.path() / "model.safetensors");
        expected = "no .safetensors file";
    }
    SUBCASE("no tokenizer") {
        fs::remove(model.path() / "tokenizer.json");
        expected = "tokenizer.json";
    }
    SUBCASE("other splits") {
        tokenizer([](Json & json) { json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "."; });
        expected = "pre_tokenizer";
    }
    SUBCASE("whole pieces first, which GPT-2's splits do not go with") {
        tokenizer([](Json & json) {
            json["pre_tokenizer"] = { { "type", "ByteLevel" }, { "add_prefix_space", false }, { "use_regex", true } };
        });
        expected = "ignore_merges";
    }
    SUBCASE("normalizer") {
        tokenizer([](Json & json) { json["normalizer"] = { { "type", "Lowercase" } }; });
        expected = "normalizer";
    }
    SUBCASE("wordpiece") {
        tokenizer([](Json & json) { json["model"]["type"] = "WordPiece"; });
        expected = "its model is not BPE";
    }
    SUBCASE("id outside") {
        tokenizer([](Json & json) { json["model"]["vocab"]["zz"] = 439; });
        expected = "outside the vocabulary";
    }
    SUBCASE("negative id") {
        tokenizer([](Json & json) { json["model"]["vocab"]["zz"] = -1; });
        expected = "outside the vocabulary";
    }
    SUBCASE("two texts of one id") {
        tokenizer([](Json & json) { json["model"]["vocab"]["zz"] = 5; });
        expected = "is both";
    }
    SUBCASE("two ids of one text") {
        tokenizer([](Json & json) { json["added_tokens"][0]["content"] = "!"; });
        expected = "has two ids";
    }
    SUBCASE("merge of one part") {
        tokenizer([](Json & json) { json["model"]["merges"][0] = "pu"; });
        expected = "merge 0";
    }
    SUBCASE("merge of what is no token") {
        tokenizer([](Json & json) { json["model"]["merges"].push_back({ "zz", "zz" }); });
        expected = "'zz zz': left part is no token";
    }
    SUBCASE("merge of many spaces") {
        tokenizer([](Json & json) { json["model"]["merges"].push_back({ std::string(1000000, ' '), "x" }); });
        expected = "left part is no token";
    }
    SUBCASE("truncated weights") {
        fs::resize_file(model.path() / "model.safetensors", 100000);
        expected = "truncated";
    }
    SUBCASE("deep JSON") {
        std::ofstream(model.path() / "config.json") << std::string(10000, '[');
        expected = "config.json";
    }
    CHECK(says(model.refusal(), expected));
}

TEST_CASE("what a GGUF file cannot say of an architecture is refused") {
    const struct {
        const char * name;
        const char * field;
        Json         value;
        const char * expected;
    } cases[] = {
        { "smollm3", "no_rope_layers", { 1, 1, 0, 1, 1, 1 }, "'no_rope_layers' is not every fourth layer" },
        { "smollm3", "use_sliding_window", true, "use_sliding_window is not supported" },
        { "granite", "residual_multiplier", -1.0, "'residual_multiplier' is out of range" },
        { "granite", "attention_bias", true, "attention_bias is not supported" },
        { "gemma3", "query_pre_attn_scalar", 31, "'query_pre_attn_scalar' is 31" },
        { "gemma3", "final_logit_softcapping", 30.0, "final_logit_softcapping is not supported" },
        { "gemma3", "use_bidirectional_attention", true, "use_bidirectional_attention is not supported" },
        { "gemma3", "hidden_activation", "silu", "hidden_activation \"silu\" is not supported | supported is gelu" },
        { "gemma3", "layer_types", { "sliding_attention", "full_attention" }, "'layer_types' is not one layer" },
        { "gemma3", "layer_types", Json::array({ "chunked_attention" }), "\"chunked_attention\" is not supported" },
        { "phi3", "rope_parameters", { { "rope_type", "linear" }, { "factor", 2.0 } }, "'default' and 'longrope'" },
        { "phi3",
          "rope_parameters",
          { { "rope_type", "longrope" }, { "short_factor", { 1.0 } }, { "long_factor", { 1.0 } } },
          "'long_factor' is not a list of 8 numbers" },
    };
    for (const auto & one : cases) {
        CAPTURE(one.name);
        CAPTURE(one.field);
        const GoldenCheckpoint model(one.name);
        model.edit("config.json", [&](Json & json) { json[one.field] = one.value; });
        CHECK_MESSAGE(says(model.refusal(), one.expected), model.refusal());
    }
}

TEST_CASE("a disk that is full leaves nothing behind") {
    const GoldenCheckpoint model("last");
    rlimit                 old{};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit     small   = old;
    small.rlim_cur     = 100000; // the file needs 1.1 MB
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    std::string message;
    try {
        model.convert();
    } catch (const Error & e) {
        message = std::string(error_kind_name(e.kind)) + ": " + e.message();
    }
    setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, handler);
    CHECK(says(message, "io: "));
    CHECK(n_entries(model.dir().path()) == 1);
}
