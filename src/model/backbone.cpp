#include "model/backbone.h"

#include "model/layer_llama.h"

namespace penelope {

Node run_layers(Graph & g, const Backbone & model, int first, int last, Node x, const Rows & rows, KvStore & kv,
                const Queries * queries) {
    for (int il = first; il < last; il++) {
        x = llama_layer(g, model, il, x, rows, kv, il == last - 1 ? queries : nullptr);
        if (x) {
            g.expand(x);
        }
    }
    return x;
}

Node final_norm(Graph & g, const Backbone & model, Node x) {
    return rms_norm(g, x, model.output_norm, model.config.rms_eps);
}

Node logits(Graph & g, const Backbone & model, Node x) {
    return linear(g, model.head, final_norm(g, model, x));
}

} // namespace penelope
