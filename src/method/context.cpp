#include "method/context.h"

#include "graph/threads.h"

namespace penelope {

namespace {

// Graphs are kept without their workspace: a few kilobytes a layer for one sequence, megabytes for many in a deep
// model.
constexpr size_t kMaxGraphs     = 128;
constexpr size_t kMaxGraphBytes = size_t(16) << 20;

} // namespace

BuiltGraph::BuiltGraph(const Context & context, int n_sequences) : graph(nullptr, &context.backend()) {
    graph.set_n_sequences(context.options().batch_invariant ? n_sequences : 1);
}

Context::Context(const Backbone & model, const DeviceInfo & device, const ContextOptions & options)
    : Context(model, std::vector<DeviceInfo>{ device }, options) {}

Context::Context(const Backbone & model, const std::vector<DeviceInfo> & devices, const ContextOptions & options)
    : model_(model), options_(options), backend_(devices, options.n_threads),
      cache_(model, options.n_streams, options.n_ctx, options.kv_type, backend_), workspace_(backend_) {
    options_.n_threads = n_threads_ = backend_.n_threads();
}

BuiltGraph & Context::find_or_build_graph(const std::string & key, const std::vector<int> & streams,
                                          const std::function<std::unique_ptr<BuiltGraph>()> & make) {
    // On GPUs and RPC servers a graph may contain copies of its views or be stored remotely, so it cannot be moved.
    std::string full = key;
    for (int stream : backend_.is_cpu_only() ? std::vector<int>{} : streams) {
        full += "@" + std::to_string(stream);
    }
    for (auto cached = graphs_.begin(); cached != graphs_.end(); ++cached) {
        if (cached->key == full) {
            graphs_.splice(graphs_.begin(), graphs_, cached);
            BuiltGraph & built = *graphs_.front().built;
            retarget_views(built.views, built.streams, streams);
            built.streams = streams;
            return built;
        }
    }
    std::unique_ptr<BuiltGraph> built   = make();
    const size_t                n_bytes = built->graph.header_bytes();
    built->streams                      = streams;
    built->views                        = find_stream_views(built->graph, cache_);
    built->is_small                     = backend_.is_cpu_only() && has_small_products(built->graph, streams.size());
    while (!graphs_.empty() && (graphs_.size() >= kMaxGraphs || graph_bytes_ + n_bytes > kMaxGraphBytes)) {
        graph_bytes_ -= graphs_.back().n_bytes;
        graphs_.pop_back();
    }
    graphs_.push_front({ std::move(full), std::move(built), n_bytes });
    graph_bytes_ += n_bytes;
    n_built_++;
    return *graphs_.front().built;
}

void Context::prepare(BuiltGraph & built) {
    built.graph.allocate(backend_, workspace_);
}

void Context::compute(BuiltGraph & built) {
    if (backend_.is_cpu_only()) {
        set_n_threads(backend_, built.is_small ? 1 : n_threads_);
    }
    built.graph.compute(backend_);
    n_computes_++;
}

} // namespace penelope
