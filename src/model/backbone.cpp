#include "model/backbone.h"

#include "graph/checkpoint.h"
#include "model/layer_llama.h"

#include <memory>

namespace penelope {

Node run_layers(Graph & g, const Backbone & model, int first, int last, Node x, const Rows & rows, KvStore & kv,
                const Queries * queries) {
    for (int il = first; il < last; il++) {
        const Queries * kept = il == last - 1 ? queries : nullptr;
        if (model.recompute) {
            // The second building comes after this call has returned: everything but the store is its own.
            const auto own = kept ? std::make_shared<const Queries>(*kept) : nullptr;
            x              = checkpoint(
                             g, [&g, &model, il, x, rows, &kv, own]() { return llama_layer(g, model, il, x, rows, kv, own.get()); });
        } else {
            x = llama_layer(g, model, il, x, rows, kv, kept);
        }
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
