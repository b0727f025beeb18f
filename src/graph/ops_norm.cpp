// Normalizations over the features of each row.
#include "graph/ops.h"

namespace penelope {

Node rms_norm(Graph & g, Node x, Node weight, float eps) {
    return ggml_mul(g.ctx(), ggml_rms_norm(g.ctx(), x, eps), weight);
}

Node layer_norm(Graph & g, Node x, Node weight, Node bias, float eps) {
    return ggml_add(g.ctx(), ggml_mul(g.ctx(), ggml_norm(g.ctx(), x, eps), weight), bias);
}

} // namespace penelope
