#include "latent/gru.h"

namespace penelope {

Node gru_cell(Graph & g, const Gru & gru, Node x, Node h) {
    const int64_t d      = h->ne[0];
    Node          from_x = linear(g, gru.input, x);  // [3d, rows]
    Node          from_h = linear(g, gru.hidden, h); // [3d, rows]

    Node gates = sigmoid(g, add(g, slice_features(g, from_x, 0, 2 * d), slice_features(g, from_h, 0, 2 * d)));
    Node r     = slice_features(g, gates, 0, d);
    Node z     = slice_features(g, gates, d, d);
    Node n     = tanh(g, add(g, slice_features(g, from_x, 2 * d, d), mul(g, r, slice_features(g, from_h, 2 * d, d))));
    return add(g, n, mul(g, z, sub(g, h, n)));
}

} // namespace penelope
