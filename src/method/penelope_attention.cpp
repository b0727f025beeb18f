// The attention of a latent step, for people who want to look at it. Fused attention has no node for its weights, so
// the memory rows pass the interval once more (Equation 4) in a graph with a tape, where attention is not fused. What
// the step itself computed stays as it is.
#include "graph/tape.h"
#include "latent/refine.h"
#include "method/penelope_steps.h"

#include <cstdio>

namespace penelope {

struct PenelopeSteps::AttentionGraph : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Tape                       tape;                          // records nothing: no weight wants a gradient
    Node                       memory = nullptr, t = nullptr; // M_{t-1}, row of the tables
    std::unique_ptr<RowInputs> rows;
    struct LayerWeights {
        int  layer;
        Node weights; // [n_kv, n_q, n_head]
    };
    std::vector<LayerWeights> layers;
};

PenelopeSteps::AttentionGraph & PenelopeSteps::attention_graph(const std::vector<SeqRange> & memory) {
    return context_.graph<AttentionGraph>(shape_key("penelope-attention", memory), streams_of(memory), [&]() {
        const LatentShape & shape = method_.shape();
        auto                built = std::make_unique<AttentionGraph>(context_);
        Graph &             g     = built->graph;
        g.set_tape(&built->tape);
        built->memory = g.input("memory", GGML_TYPE_F32, d_, shape.n_memory);
        built->t      = g.input("t", GGML_TYPE_I32, 1);
        built->rows   = std::make_unique<RowInputs>(g, "rows", context_.model().config, memory, false);
        TimeStep step{};
        step.memory_offset = ggml_get_rows(g.ctx(), offsets_, built->t); // [d * m, 1]
        g.expand(
            interval_features(g, context_.model(), shape, step, built->memory, built->rows->rows(), context_.cache()));
        Node weights = nullptr;
        for (Node node : std::vector<Node>(g.nodes())) {
            int layer = 0;
            if (node->op == GGML_OP_SOFT_MAX) {
                weights = node;
            } else if (weights && std::sscanf(ggml_get_name(node), "layer.%d", &layer) == 1) { // its result
                built->layers.push_back({ layer, weights });
                g.output(weights);
                weights = nullptr;
            }
        }
        return built;
    });
}

std::vector<LayerAttention> PenelopeSteps::attention(int stream, const std::vector<StateTensor> & before) {
    const StateTensor * state = find_state(before, "M");
    if (step(stream) == 0 || !state) {
        return {};
    }
    const LatentShape &         shape  = method_.shape();
    const std::vector<SeqRange> memory = layout_after_prompt({ stream }).memory;
    AttentionGraph &            built  = attention_graph(memory);
    context_.prepare(built);
    built.graph.set(built.memory, state->data);
    built.graph.set(built.t, std::vector<int32_t>{ step(stream) - 1 });
    built.rows->fill(memory, &context_.cache());
    context_.compute(built);

    std::vector<LayerAttention> layers;
    for (const AttentionGraph::LayerWeights & found : built.layers) {
        const std::vector<float> all  = get_node(found.weights); // [n_kv, n_q, n_head], padded rows and columns
        const ptrdiff_t          n_kv = found.weights->ne[0], n_q = found.weights->ne[1];
        LayerAttention           layer;
        layer.layer       = found.layer;
        layer.n_heads     = int(found.weights->ne[2]);
        layer.n_rows      = shape.n_memory;
        layer.n_positions = at(stream).n_prompt;
        for (int head = 0; head < layer.n_heads; head++) {
            for (int row = 0; row < layer.n_rows; row++) {
                const auto first = all.begin() + (head * n_q + row) * n_kv;
                layer.weights.insert(layer.weights.end(), first, first + layer.n_positions);
            }
        }
        layers.push_back(std::move(layer));
    }
    return layers;
}

} // namespace penelope
