// Phi-3, Phi-3.5-mini and Phi-4-mini: one matrix for query, key and value and one for gate and up; rotation of part of
// a head, with other frequencies in long contexts (LongRoPE).
#include "arch/architecture.h"
#include "arch/blocks.h"
#include "base/error.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"

#include <algorithm>

namespace penelope {

namespace {

class Phi3Layer : public Layer {
  public:
    void list_tensors(const ModelConfig & c, TensorTable & table) override {
        table.norm(attn_norm_, "attn_norm", "input_layernorm", c.n_embd);
        table.projection(qkv_, "attn_qkv", "self_attn.qkv_proj", c.n_embd, c.n_embd_q() + 2 * c.n_embd_kv());
        table.projection(w_.o, "attn_output", "self_attn.o_proj", c.n_embd_q(), c.n_embd).writes_residual = true;
        table.norm(ffn_norm_, "ffn_norm", "post_attention_layernorm", c.n_embd);
        table.projection(gate_up_, "ffn_up", "mlp.gate_up_proj", c.n_embd, 2 * c.n_ff);
        table.projection(down_, "ffn_down", "mlp.down_proj", c.n_ff, c.n_embd).writes_residual = true;
    }

    StateShape state(const ModelConfig &) const override { return {}; }

    Node build(Graph & g, const LayerCall & call, Node x) const override {
        const ModelConfig & c   = call.config;
        const int64_t       n_q = c.n_embd_q(), n_kv = c.n_embd_kv();
        Node                qkv = linear(g, qkv_, rms_norm(g, x, attn_norm_, c.rms_eps)); // [n_q + 2 n_kv, n_rows]
        write_keys_and_values(g, call, w_, slice_features(g, qkv, n_q, n_kv), slice_features(g, qkv, n_q + n_kv, n_kv));
        if (call.has_no_output_rows()) {
            return nullptr;
        }
        Node q = slice_features(g, qkv, 0, n_q);
        if (call.output_rows) {
            x = select_output_rows(g, x, *call.output_rows);
            q = select_output_rows(g, q, *call.output_rows);
        }
        x            = add(g, x, linear(g, w_.o, attend(g, call, w_, q)));
        Node gate_up = linear(g, gate_up_, rms_norm(g, x, ffn_norm_, c.rms_eps)); // [2 n_ff, n_rows]
        Node wide    = swiglu(g, slice_features(g, gate_up, 0, c.n_ff), slice_features(g, gate_up, c.n_ff, c.n_ff));
        x            = add(g, x, linear(g, down_, wide));
        g.mark_layer_application(g.named(x, "layer.%d", call.il));
        return x;
    }

  private:
    Node             attn_norm_ = nullptr, ffn_norm_ = nullptr;
    AttentionWeights w_; // only o
    Linear           qkv_, gate_up_, down_;
};

// In all layers; 0: none.
void set_window(ModelConfig & c, int64_t window) {
    c.window = int(std::clamp<int64_t>(window, 0, int64_t(kMaxContext)));
    if (c.window > 0) {
        c.is_windowed.assign(size_t(c.n_layer), true);
    }
}

void read_gguf(const GgufReader & file, ModelConfig & c) {
    const auto key = [&](const char * name) { return keys::arch(c.architecture, name); };
    set_window(c, file.find_u32(key(keys::sliding_window)).value_or(0));
    if (file.find_tensor("rope_factors_long.weight")) {
        require(file.find_tensor("rope_factors_short.weight") != nullptr, file,
                "tensor rope_factors_short.weight is missing, expected beside rope_factors_long.weight");
        c.n_ctx_short    = get_bounded(file, key(keys::rope_scaling_orig_length), kMaxContext);
        c.rope_magnitude = find_factor(file, key(keys::rope_scaling_attn_factor), 1.0f);
    }
}

// llama.cpp's converter writes the length of the short context and the window always.
void write_gguf(GgufWriter & writer, const ModelConfig & c) {
    const auto key = [&](const char * name) { return keys::arch(c.architecture, name); };
    writer.set_u32(key(keys::sliding_window), uint32_t(c.window));
    writer.set_u32(key(keys::rope_scaling_orig_length), uint32_t(c.n_ctx_short > 0 ? c.n_ctx_short : c.n_ctx_train));
    if (c.n_ctx_short > 0) {
        writer.set_f32(key(keys::rope_scaling_attn_factor), c.rope_magnitude);
    }
}

void read_hf(const Json & json, const std::string & path, ModelConfig & c) {
    set_window(c, json_find<int64_t>(json, "sliding_window", path).value_or(0));
}

void write_hf(const ModelConfig & c, OrderedJson & json) {
    json["sliding_window"]                   = c.window > 0 ? OrderedJson(c.window) : OrderedJson();
    json["original_max_position_embeddings"] = c.n_ctx_short > 0 ? c.n_ctx_short : c.n_ctx_train;
    json["partial_rotary_factor"]            = double(c.n_rope()) / double(c.head_dim);
}

std::string describe(const ModelConfig & c) {
    std::string text = "query, key and value in one matrix, gate and up in one";
    if (c.window > 0 && c.window < c.n_ctx_train) {
        text += "; sliding window of " + std::to_string(c.window) + " tokens";
    }
    if (c.n_ctx_short > 0) {
        text += "; other rotation in contexts longer than " + std::to_string(c.n_ctx_short) + " tokens";
    }
    return text;
}

KnownShape shape(const char * name, int n_head, int n_head_kv, int head_dim, int rope_dims, int n_vocab, int n_ctx,
                 int window) {
    ModelConfig c;
    c.architecture = "phi3";
    c.name         = name;
    c.n_layer      = 32;
    c.n_embd       = 3072;
    c.n_ff         = 8192;
    c.n_head       = n_head;
    c.n_head_kv    = n_head_kv;
    c.head_dim     = head_dim;
    c.rope_dims    = rope_dims;
    c.n_vocab      = n_vocab;
    c.n_ctx_train  = n_ctx;
    set_window(c, window);
    return { name, c, 21 };
}

} // namespace

const Architecture & phi3_architecture() {
    static const Architecture architecture = [] {
        Architecture a;
        a.name           = "phi3";
        a.hf_types       = { "phi3" };
        a.hf_class       = "Phi3ForCausalLM";
        a.make_layer     = [](const ModelConfig &, int) { return std::unique_ptr<Layer>(new Phi3Layer); };
        a.rope_mode      = GGML_ROPE_TYPE_NEOX;
        a.partial_rotary = true;
        a.long_rope      = true;
        a.read_gguf      = read_gguf;
        a.write_gguf     = write_gguf;
        a.read_hf        = read_hf;
        a.write_hf       = write_hf;
        a.describe       = describe;
        a.shapes         = { shape("phi-3-mini-4k", 32, 32, 96, 96, 32064, 4096, 2047),
                             shape("phi-4-mini", 24, 8, 128, 96, 200064, 131072, 262144) };
        return a;
    }();
    return architecture;
}

} // namespace penelope
