#include "latent/interface.h"

namespace penelope {

Boundary boundary(Graph & g, const Backbone & model, const PenelopeModules & modules, const LatentShape & shape,
                  Node prompt, Node target, int n_sequences, const RowLayout & rows, SequenceState & kv) {
    const int64_t d        = prompt->ne[0];
    const int64_t n_prompt = prompt->ne[1];
    const int64_t n_inter  = int64_t(shape.n_interface()) * n_sequences;

    Node anchors =
        concat_rows(g, { add(g, modules.memory_anchor, modules.memory_group), modules.readout_anchor }); // [d, m + q]
    std::vector<Node> parts{ prompt, repeat_rows(g, anchors, n_sequences) };
    if (target) {
        parts.push_back(target);
    }
    Node x = run_layers(g, model, 0, shape.start, concat_rows(g, parts), rows, kv);

    Node     inter = reshape_rows(g, slice_rows(g, x, n_prompt, n_inter), d * shape.n_interface(), n_sequences);
    Boundary b{};
    b.prompt = slice_rows(g, x, 0, n_prompt);
    b.memory =
        reshape_rows(g, slice_features(g, inter, 0, d * shape.n_memory), d, int64_t(shape.n_memory) * n_sequences);
    b.readout = reshape_rows(g, slice_features(g, inter, d * shape.n_memory, d * shape.n_readout), d,
                             int64_t(shape.n_readout) * n_sequences);
    b.target  = target ? slice_rows(g, x, n_prompt + n_inter, target->ne[1]) : nullptr;
    return b;
}

Node prompt_cache(Graph & g, const Backbone & model, const LatentShape & shape, Node prompt,
                  const RowLayout & prompt_rows, SequenceState & kv) {
    const OutputRows none{};
    const bool       last = shape.end == model.config.n_layer;
    return run_layers(g, model, shape.start, shape.end, prompt, prompt_rows, kv, last ? &none : nullptr);
}

Node join_interface(Graph & g, const LatentShape & shape, Node memory, Node readout) {
    const int64_t d      = memory->ne[0];
    const int64_t n      = memory->ne[1] / shape.n_memory;
    Node          joined = concat_features(g, reshape_rows(g, memory, d * shape.n_memory, n),
                                           reshape_rows(g, readout, d * shape.n_readout, n));
    return reshape_rows(g, joined, d, n * shape.n_interface());
}

Node final_pass(Graph & g, const Backbone & model, const LatentShape & shape, Node interface_and_target, Node prompt,
                const RowLayout & rows, const RowLayout & all_rows, SequenceState & kv,
                const OutputRows & output_rows) {
    const int n_layer = model.config.n_layer;
    if (!prompt) {
        return run_layers(g, model, shape.start, n_layer, interface_and_target, rows, kv, &output_rows);
    }
    Node x = run_layers(g, model, shape.start, shape.end, interface_and_target, rows, kv);
    return run_layers(g, model, shape.end, n_layer, concat_rows(g, { prompt, x }), all_rows, kv, &output_rows);
}

} // namespace penelope
