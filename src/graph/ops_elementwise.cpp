// Element-wise operations.
#include "graph/ops.h"

namespace penelope {

Node add(Graph & g, Node a, Node b) { return ggml_add(g.ctx(), a, b); }

Node sub(Graph & g, Node a, Node b) { return ggml_sub(g.ctx(), a, b); }

Node mul(Graph & g, Node a, Node b) { return ggml_mul(g.ctx(), a, b); }

Node mul_scalar(Graph & g, Node a, Node b) { return ggml_mul(g.ctx(), a, b); }

Node scale(Graph & g, Node a, float factor, float offset) { return ggml_scale_bias(g.ctx(), a, factor, offset); }

Node tanh(Graph & g, Node a) { return ggml_tanh(g.ctx(), a); }

Node sigmoid(Graph & g, Node a) { return ggml_sigmoid(g.ctx(), a); }

Node silu(Graph & g, Node a) { return ggml_silu(g.ctx(), a); }

Node swiglu(Graph & g, Node gate, Node up) { return ggml_swiglu_split(g.ctx(), gate, up); }

} // namespace penelope
