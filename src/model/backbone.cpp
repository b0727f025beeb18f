#include "model/backbone.h"

#include "graph/activation_checkpoint.h"

#include <algorithm>

namespace penelope {

Backbone make_backbone(const ModelConfig & config) {
    const Architecture & arch = get_architecture(config);
    Backbone             model;
    model.config = config;
    for (int il = 0; il < config.n_layer; il++) {
        model.layers.push_back(arch.make_layer(config, il));
    }
    model.rope.n_dims     = config.n_rope();
    model.rope.mode       = arch.rope_mode;
    model.rope.freq_base  = config.rope_base;
    model.rope.n_ctx_orig = config.n_ctx_short > 0 ? config.n_ctx_short : config.n_ctx_train;
    model.rope.magnitude  = config.rope_magnitude;
    model.rope.freq_scale = 1.0f / config.rope_factor;
    return model;
}

RopeParams Backbone::rope_at(int il, int n_ctx) const {
    RopeParams params = ropes.empty() ? rope : ropes[size_t(device_of(il))];
    if (config.window_of(il) > 0 && config.window_rope_base > 0.0f) {
        params.freq_base  = config.window_rope_base;
        params.freq_scale = 1.0f;
    }
    if (params.long_factors && n_ctx > params.n_ctx_orig) {
        params.factors = params.long_factors;
    }
    params.n_dims = config.has_rope(il) ? params.n_dims : 0;
    return params;
}

std::vector<TensorSpec> tensors_of(Backbone & model) {
    const ModelConfig &  c    = model.config;
    const Architecture & arch = get_architecture(c);
    TensorTable          table(arch.norms);
    if (arch.scaled_rope) {
        TensorSpec & factors = table.vector(model.rope.factors, "rope_freqs.weight", "", { c.n_rope() / 2 });
        factors.role         = TensorRole::constant;
        factors.is_optional  = true;
    }
    if (arch.long_rope) {
        for (auto [node, name] : { std::pair(&model.rope.long_factors, "rope_factors_long.weight"),
                                   std::pair(&model.rope.factors, "rope_factors_short.weight") }) {
            TensorSpec & factors = table.vector(*node, name, "", { c.n_rope() / 2 });
            factors.role         = TensorRole::constant;
            factors.is_optional  = true;
        }
    }
    table.table(model.embedding, "token_embd", "model.embed_tokens", c.n_embd, c.n_vocab);
    for (int il = 0; il < c.n_layer; il++) {
        const std::string number = std::to_string(il);
        table.set_prefix("blk." + number + ".", "model.layers." + number + ".", il);
        model.layers[size_t(il)]->list_tensors(c, table);
    }
    table.set_prefix("", "");
    table.norm(model.output_norm, "output_norm", "model.norm", c.n_embd);
    table.matrix(model.head, "output", "lm_head", c.n_embd, c.n_vocab).is_optional = true;
    return table.take();
}

std::vector<TensorSpec> tensors_of(const ModelConfig & config) {
    Backbone                model   = make_backbone(config);
    std::vector<TensorSpec> tensors = tensors_of(model);
    for (TensorSpec & tensor : tensors) {
        tensor.node   = nullptr;
        tensor.linear = nullptr;
    }
    return tensors;
}

int64_t n_recurrent(const Backbone & model) {
    int64_t n = 0;
    for (const auto & layer : model.layers) {
        for (int64_t part : layer->state(model.config).recurrent) {
            n += part;
        }
    }
    return n;
}

size_t kv_bytes_per_row(const Backbone & model, ggml_type type) {
    size_t n = 0;
    for (const auto & layer : model.layers) {
        n += layer->state(model.config).has_kv ? 2 * ggml_row_size(type, model.config.n_embd_kv()) : 0;
    }
    return n;
}

Node run_layers(Graph & g, const Backbone & model, int first, int last, Node x, const RowLayout & rows,
                SequenceState & state, const OutputRows * output_rows) {
    const auto build = [&g, &model, &state](int il, Node in, const RowLayout & at, const OutputRows * selected) {
        set_dropout_rows(g, at.segments);
        g.set_device(model.device_of(il));
        const LayerCall call{ model.config, model.rope_at(il, state.n_ctx()), il, at, state, selected };
        Node            out = model.layers[size_t(il)]->build(g, call, in);
        g.set_dropout_rows(nullptr);
        return out;
    };
    for (int il = first; il < last; il++) {
        const OutputRows * selected = il == last - 1 ? output_rows : nullptr;
        if (model.recompute) {
            // The recomputation runs after this function has returned, so the lambda owns everything except `state`.
            const auto own = selected ? std::make_shared<const OutputRows>(*selected) : nullptr;
            x = checkpoint_activations(g, [build, il, x, rows, own]() { return build(il, x, rows, own.get()); });
        } else {
            x = build(il, x, rows, selected);
        }
        if (x) {
            g.expand(x);
        }
    }
    return x;
}

Node embed_tokens(Graph & g, const Backbone & model, Node ids) {
    Node rows = embed(g, model.embedding, ids);
    return model.config.embedding_scale == 1.0f ? rows : scale(g, rows, model.config.embedding_scale);
}

Node final_norm(Graph & g, const Backbone & model, Node x) {
    return rms_norm(g, x, model.output_norm, model.config.rms_eps);
}

Node head_input(Graph & g, const Backbone & model, Node x) {
    Node normed = final_norm(g, model, x);
    return model.config.logit_scale == 1.0f ? normed : scale(g, normed, 1.0f / model.config.logit_scale);
}

Node logits(Graph & g, const Backbone & model, Node x) {
    return linear(g, model.head, head_input(g, model, x));
}

} // namespace penelope
