// Qwen3.5 (text): three gated delta nets per layer of gated attention.
#include "arch/architecture.h"
#include "arch/qwen35/layers.h"

namespace penelope {

namespace {

KnownShape qwen3_5_0_8b() {
    auto arch_config           = std::make_shared<Qwen35Config>();
    arch_config->state_dim     = 128;
    arch_config->n_key_heads   = 16;
    arch_config->n_value_heads = 16;
    for (int il = 0; il < 24; il++) {
        arch_config->is_recurrent.push_back(il % 4 != 3);
    }
    ModelConfig c;
    c.architecture = "qwen35";
    c.name         = "qwen3.5-0.8b";
    c.n_layer      = 24;
    c.n_embd       = 1024;
    c.n_ff         = 3584;
    c.n_head       = 8;
    c.n_head_kv    = 2;
    c.head_dim     = 256;
    c.has_head_dim = true;
    c.rope_dims    = 64;
    c.n_vocab      = 248320;
    c.n_ctx_train  = 262144;
    c.rms_eps      = 1e-6f;
    c.rope_base    = 1e7f;
    c.arch_config  = arch_config;
    return { "qwen3.5-0.8b", c, 19 };
}

std::unique_ptr<Layer> make_layer(const ModelConfig & config, int il) {
    if (qwen35_config(config).is_recurrent[size_t(il)]) {
        return std::make_unique<Qwen35DeltaNet>();
    }
    return std::make_unique<Qwen35Attention>();
}

} // namespace

const Architecture & qwen35_architecture() {
    static const Architecture architecture = [] {
        Architecture a;
        a.name           = "qwen35";
        a.hf_types       = { "qwen3_5_text", "qwen3_5" };
        a.hf_class       = "Qwen3_5ForCausalLM";
        a.make_layer     = make_layer;
        a.rope_mode      = GGML_ROPE_TYPE_NEOX; // M-RoPE equals NEOX RoPE when all axes have the same position
        a.partial_rotary = true;
        a.norms          = ValueTransform::one_plus;
        a.hf_prefixes    = { "model.language_model." };
        a.hf_skipped     = { "model.visual.", "mtp." };
        a.read_gguf      = read_qwen35_gguf;
        a.write_gguf     = write_qwen35_gguf;
        a.read_hf        = read_qwen35_hf;
        a.write_hf       = write_qwen35_hf;
        a.describe       = describe_qwen35;
        a.shapes         = { qwen3_5_0_8b() };
        return a;
    }();
    return architecture;
}

} // namespace penelope
