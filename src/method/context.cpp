#include "method/context.h"

namespace penelope {

namespace {

constexpr size_t kMaxGraphs = 32; // a graph without its workspace takes about a megabyte

} // namespace

BuiltGraph::BuiltGraph(const Context & context, int max_nodes) : graph(max_nodes, nullptr, &context.backend()) {}

Context::Context(const Backbone & model, const DeviceInfo & device, const ContextOptions & options)
    : model_(model), options_(options), backend_(device, options.n_threads),
      cache_(model, options.n_streams, options.n_rows, options.kv_type, backend_), workspace_(backend_) {
    options_.n_threads = backend_.n_threads();
}

BuiltGraph & Context::keep(const std::string & key, const std::function<std::unique_ptr<BuiltGraph>()> & make) {
    for (auto kept = graphs_.begin(); kept != graphs_.end(); ++kept) {
        if (kept->key == key) {
            graphs_.splice(graphs_.begin(), graphs_, kept);
            return *graphs_.front().built;
        }
    }
    if (graphs_.size() == kMaxGraphs) {
        graphs_.pop_back();
    }
    graphs_.push_front({ key, make() });
    n_built_++;
    return *graphs_.front().built;
}

void Context::prepare(BuiltGraph & built) {
    built.graph.allocate(backend_, workspace_);
}

void Context::compute(BuiltGraph & built) {
    built.graph.compute(backend_);
    n_computes_++;
}

int node_budget(const Backbone & model, int n_layer_applications, int n_stretches, int n_other) {
    constexpr int kPerLayer = 64;
    return n_layer_applications * (kPerLayer + nodes_per_stretch(model, 1, false) * n_stretches) + n_other + 256;
}

} // namespace penelope
