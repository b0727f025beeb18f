#include "latent/readout.h"

#include "latent/gru.h"

namespace penelope {

Node readout_proposal(Graph & g, const PenelopeModules & modules, const LatentShape & shape, const TimeStep & step,
                      Node features) {
    Node mean   = add(g, mean_rows(g, features, shape.n_memory), step.readout_step); // [d, n]
    Node normed = layer_norm(g, mean, modules.proj_norm.weight, modules.proj_norm.bias);
    Node wide   = linear(g, modules.proj, normed); // [q * d, n]
    return reshape_rows(g, wide, features->ne[0], wide->ne[1] * shape.n_readout);
}

Node update_readout(Graph & g, const PenelopeModules & modules, Node proposal, Node readout) {
    return gru_cell(g, modules.readout_gru, proposal, readout);
}

} // namespace penelope
