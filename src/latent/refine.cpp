#include "latent/refine.h"

#include "latent/gru.h"

namespace penelope {

Node interval_features(Graph & g, const Backbone & model, const LatentShape & shape, const TimeStep & step, Node memory,
                       const RowLayout & rows, SequenceState & kv) {
    const int64_t d = memory->ne[0];
    const int64_t n = memory->ne[1] / shape.n_memory;
    // One sequence's memory as one long row: the offset is then the same for every row.
    Node input = add(g, reshape_rows(g, memory, d * shape.n_memory, n), step.memory_offset);
    return run_layers(g, model, shape.start, shape.end, reshape_rows(g, input, d, n * shape.n_memory), rows, kv);
}

Node modulate(Graph & g, const PenelopeModules & modules, const TimeStep & step, Node features) {
    Node h      = add(g, mul(g, features, step.gain), step.shift); // Equation 6
    Node normed = layer_norm(g, h, modules.adapter_norm.weight, modules.adapter_norm.bias);
    Node inner  = silu(g, linear(g, modules.adapter_down, normed)); // [b, rows]
    return add(g, h, linear(g, modules.adapter_up, inner));         // Equation 7
}

Node update_memory(Graph & g, const PenelopeModules & modules, const TimeStep & step, Node modulated, Node memory) {
    Node candidate = gru_cell(g, modules.memory_gru, modulated, memory); // Equation 9
    Node change    = sub(g, candidate, memory);
    return add(g, memory,
               ggml_nelements(step.update_rate) == 1 ? mul_scalar(g, change, step.update_rate)
                                                     : mul(g, change, step.update_rate));
}

} // namespace penelope
