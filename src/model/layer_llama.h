// One Llama decoder layer: x += Wo attention(rope(Wq n), rope(Wk n), Wv n), n = rmsnorm(x);  x += Wdown(silu(Wgate m) * Wup m),
// m = rmsnorm(x).
#pragma once

#include "model/backbone.h"

namespace penelope {

// See run_layers. Returns null when `queries` keeps no row.
Node llama_layer(Graph & g, const Backbone & model, int il, Node x, const Rows & rows, KvStore & kv,
                 const Queries * queries);

} // namespace penelope
