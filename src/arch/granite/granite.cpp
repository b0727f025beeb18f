// Granite, dense: Llama's layer with four factors: of embeddings, of what blocks add, of attention scores, of logits.
#include "arch/llama/llama.h"
#include "base/error.h"
#include "base/number_text.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"

namespace penelope {

namespace {

struct Factor {
    const char * gguf;
    const char * hf;
    float ModelConfig::*value;
    float               fallback; // 0 stands for 1 / sqrt(head_dim)
};

constexpr Factor kFactors[] = {
    { keys::embedding_scale, "embedding_multiplier", &ModelConfig::embedding_scale, 1.0f },
    { keys::residual_scale, "residual_multiplier", &ModelConfig::residual_scale, 1.0f },
    { keys::attention_scale, "attention_multiplier", &ModelConfig::attention_scale, 0.0f },
    { keys::logit_scale, "logits_scaling", &ModelConfig::logit_scale, 1.0f },
};

void read_gguf(const GgufReader & file, ModelConfig & c) {
    const auto key = [&](const char * name) { return keys::arch(c.architecture, name); };
    for (const Factor & factor : kFactors) {
        c.*factor.value = find_factor(file, key(factor.gguf), factor.fallback);
    }
    if (!file.find_bool(key(keys::rope_scaling_finetuned)).value_or(true)) {
        throw Error(ErrorKind::unsupported,
                    file.path() + ": " + key(keys::rope_scaling_finetuned) + " is false, a model without rotation");
    }
}

// llama.cpp needs the factor of the logits, whatever it is.
void write_gguf(GgufWriter & writer, const ModelConfig & c) {
    for (const Factor & factor : kFactors) {
        if (c.*factor.value != factor.fallback || factor.value == &ModelConfig::logit_scale) {
            writer.set_f32(keys::arch(c.architecture, factor.gguf), c.*factor.value);
        }
    }
}

void read_hf(const Json & json, const std::string & path, ModelConfig & c) {
    refuse_hf_biases(json, path);
    for (const Factor & factor : kFactors) {
        const double value = json_find<double>(json, factor.hf, path).value_or(1.0);
        if (!(value > 1e-6 && value < 1e6)) {
            throw Error(ErrorKind::format, path + ": '" + factor.hf + "' is out of range, expected 1e-6 to 1e6");
        }
        c.*factor.value = float(value);
    }
}

void write_hf(const ModelConfig & c, OrderedJson & json) {
    write_hf_no_biases(json);
    for (const Factor & factor : kFactors) {
        json[factor.hf] = shortest_decimal(c.*factor.value);
    }
    json["attention_multiplier"] = shortest_decimal(c.score_scale());
}

KnownShape granite_3_3_2b() {
    ModelConfig c;
    c.architecture    = "granite";
    c.name            = "granite-3.3-2b";
    c.n_layer         = 40;
    c.n_embd          = 2048;
    c.n_ff            = 8192;
    c.n_head          = 32;
    c.n_head_kv       = 8;
    c.head_dim        = 64;
    c.n_vocab         = 49159;
    c.n_ctx_train     = 131072;
    c.rope_base       = 10000000.0f;
    c.embedding_scale = 12.0f;
    c.residual_scale  = 0.22f;
    c.attention_scale = 0.015625f;
    c.logit_scale     = 8.0f;
    return { "granite-3.3-2b", c, 27 };
}

} // namespace

const Architecture & granite_architecture() {
    static const Architecture architecture = [] {
        Architecture a;
        a.name        = "granite";
        a.hf_types    = { "granite" };
        a.hf_class    = "GraniteForCausalLM";
        a.make_layer  = make_llama_layer;
        a.rope_mode   = GGML_ROPE_TYPE_NORMAL;
        a.scaled_rope = true;
        a.read_gguf   = read_gguf;
        a.write_gguf  = write_gguf;
        a.read_hf     = read_hf;
        a.write_hf    = write_hf;
        a.shapes      = { granite_3_3_2b() };
        return a;
    }();
    return architecture;
}

} // namespace penelope
