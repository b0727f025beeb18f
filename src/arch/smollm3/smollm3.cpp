// SmolLM3: Llama's layer, and every fourth layer without rotation. GGUF has no key for it: llama.cpp knows the pattern.
#include "arch/llama/llama.h"
#include "base/error.h"

namespace penelope {

namespace {

constexpr int kInterval = 4; // of layers without rotation

std::vector<bool> unrotated_layers(int n_layer) {
    std::vector<bool> is_unrotated;
    for (int il = 0; il < n_layer; il++) {
        is_unrotated.push_back((il + 1) % kInterval == 0);
    }
    return is_unrotated;
}

void read_gguf(const GgufReader &, ModelConfig & c) {
    c.is_unrotated = unrotated_layers(c.n_layer);
}

// Hugging Face has a list with 1 for layers that rotate.
void read_hf(const Json & json, const std::string & path, ModelConfig & c) {
    refuse_hf_biases(json, path);
    if (json_find<bool>(json, "use_sliding_window", path).value_or(false)) {
        throw Error(ErrorKind::unsupported, path + ": use_sliding_window is not supported");
    }
    c.is_unrotated                          = unrotated_layers(c.n_layer);
    const std::optional<int64_t> n_interval = json_find<int64_t>(json, "no_rope_layer_interval", path);
    bool                         is_regular = n_interval.value_or(kInterval) == kInterval;
    if (json.contains("no_rope_layers") && json["no_rope_layers"].is_array()) {
        const Json & rotates = json["no_rope_layers"];
        is_regular           = rotates.size() == c.is_unrotated.size();
        for (size_t il = 0; is_regular && il < rotates.size(); il++) {
            is_regular = rotates[il] == (c.is_unrotated[il] ? 0 : 1);
        }
    }
    if (!is_regular) {
        throw Error(ErrorKind::unsupported, path + ": 'no_rope_layers' is not every fourth layer",
                    "a GGUF file cannot describe another pattern");
    }
}

void write_hf(const ModelConfig & c, OrderedJson & json) {
    write_hf_no_biases(json);
    json["no_rope_layer_interval"] = kInterval;
    for (const bool is_unrotated : c.is_unrotated) {
        json["no_rope_layers"].push_back(is_unrotated ? 0 : 1);
    }
    json["use_sliding_window"] = false;
}

std::string describe(const ModelConfig &) {
    return "every fourth layer without rotation";
}

KnownShape smollm3_3b() {
    ModelConfig c;
    c.architecture = "smollm3";
    c.name         = "smollm3-3b";
    c.n_layer      = 36;
    c.n_embd       = 2048;
    c.n_ff         = 11008;
    c.n_head       = 16;
    c.n_head_kv    = 4;
    c.head_dim     = 128;
    c.n_vocab      = 128256;
    c.n_ctx_train  = 65536;
    c.rms_eps      = 1e-6f;
    c.rope_base    = 5000000.0f;
    c.is_unrotated = unrotated_layers(c.n_layer);
    return { "smollm3-3b", c, 24 };
}

} // namespace

const Architecture & smollm3_architecture() {
    static const Architecture architecture = [] {
        Architecture a;
        a.name       = "smollm3";
        a.hf_types   = { "smollm3" };
        a.hf_class   = "SmolLM3ForCausalLM";
        a.make_layer = make_llama_layer;
        a.rope_mode  = GGML_ROPE_TYPE_NORMAL;
        a.hf_tied    = true;
        a.read_gguf  = read_gguf;
        a.read_hf    = read_hf;
        a.write_hf   = write_hf;
        a.describe   = describe;
        a.shapes     = { smollm3_3b() };
        return a;
    }();
    return architecture;
}

} // namespace penelope
