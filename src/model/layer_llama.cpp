#include "model/layer_llama.h"

#include <cmath>

namespace penelope {

namespace {

Node keep(Graph & g, Node x, const Queries & queries) {
    return queries.index ? gather_rows(g, x, queries.index) : slice_rows(g, x, queries.first, queries.count);
}

Node attend(Graph & g, const Backbone & model, int il, Node q, const std::vector<Segment> & segments, KvStore & kv) {
    const ModelConfig &  c = model.config;
    const AttentionShape shape{ c.head_dim, c.n_head, c.n_head_kv, 1.0f / std::sqrt(float(c.head_dim)) };
    std::vector<Node>    parts;
    for (const Segment & segment : segments) {
        const Kv seen = kv.read(g, il, segment);
        parts.push_back(
            attention(g, slice_rows(g, q, segment.first, segment.count), seen.k, seen.v, segment.mask, shape));
    }
    return concat_rows(g, parts); // [head_dim * n_head, n_rows]
}

} // namespace

Node llama_layer(Graph & g, const Backbone & model, int il, Node x, const Rows & rows, KvStore & kv,
                 const Queries * queries) {
    const LlamaLayer &  w = model.layers[il];
    const ModelConfig & c = model.config;

    Node normed = rms_norm(g, x, w.attn_norm, c.rms_eps);                                  // [n_embd, n_rows]
    Node k      = rope(g, linear(g, w.k, normed), rows.positions, c.head_dim, model.rope); // [n_embd_kv, n_rows]
    Node v      = linear(g, w.v, normed);
    kv.write(g, il, k, v, rows);
    if (queries && !queries->index && queries->count == 0) {
        g.mark_layer_application(v);
        return nullptr;
    }

    Node positions = rows.positions;
    if (queries) {
        x         = keep(g, x, *queries);
        normed    = keep(g, normed, *queries);
        positions = queries->positions;
    }
    Node q   = rope(g, linear(g, w.q, normed), positions, c.head_dim, model.rope); // [n_embd_q, n_rows]
    Node mix = attend(g, model, il, q, queries ? queries->segments : rows.segments, kv);
    x        = add(g, x, linear(g, w.o, mix));

    Node hidden = rms_norm(g, x, w.ffn_norm, c.rms_eps);
    Node active = swiglu(g, linear(g, w.gate, hidden), linear(g, w.up, hidden)); // [n_ff, n_rows]
    x           = g.named(add(g, x, linear(g, w.down, active)), "layer.%d", il);
    g.mark_layer_application(x);
    return x;
}

} // namespace penelope
