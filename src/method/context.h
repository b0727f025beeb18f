// Inference context, like llama_context: KV cache and recurrent state of one or more sequences, a backend, and a cache
// of built graphs. Used by one thread at a time.
#pragma once

#include "model/backbone.h"
#include "model/row_inputs.h"
#include "model/stream_views.h"

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace penelope {

struct ContextOptions {
    int       n_streams = 1;
    int       n_ctx     = 0; // per sequence
    ggml_type kv_type   = GGML_TYPE_F16;
    int       n_threads = 0;
    int       n_batch   = 512; // prompt tokens per graph (prefill chunk)
    int       bucket    = 1;   // prompt lengths are rounded up to a multiple, so that one graph serves several
    bool swap_latents = false; // a sweep answers each question from the memory and readout of the next one in its batch
    bool batch_invariant = false; // same bits alone and in a batch (graph/batch_invariance.h)
};

class Context;

// A graph with the handles needed to fill its inputs and read its outputs; derived per kind of graph.
struct BuiltGraph {
    explicit BuiltGraph(const Context & context, int n_sequences = 1);
    virtual ~BuiltGraph() = default;
    Graph graph;

    std::vector<int>        streams;          // the streams its views point to now
    std::vector<StreamView> views;            // its views of the cache
    bool                    is_small = false; // faster with one thread
};

// Something that lives as long as a context and shares its graphs.
class ContextExtension {
  public:
    virtual ~ContextExtension() = default;
};

class Context {
  public:
    Context(const Backbone & model, const DeviceInfo & device, const ContextOptions & options);
    // devices: those the layers of the model are spread over.
    Context(const Backbone & model, const std::vector<DeviceInfo> & devices, const ContextOptions & options);

    const Backbone &       model() const { return model_; }
    const Backend &        backend() const { return backend_; }
    Backend &              backend() { return backend_; }
    const ContextOptions & options() const { return options_; }
    SequenceCache &        cache() { return cache_; }
    int                    n_ctx() const { return options_.n_ctx; }
    // For RowInputs: number of streams of the cache if the device supports batched attention, else 0.
    int n_batched_streams() const { return backend_.is_cpu_only() && options_.n_streams > 1 ? options_.n_streams : 0; }
    // Device of the latent modules and of the state between latent steps.
    const DeviceInfo & latent_device() const {
        return backend_.device_backend(size_t(model_.latent_device_id)).device();
    }

    // Graph cache (LRU): the graph cached under `key`, moved to these streams, or a new one built by `make`.
    template <typename T>
    T & graph(const std::string & key, const std::vector<int> & streams,
              const std::function<std::unique_ptr<T>()> & make) {
        return static_cast<T &>(
            find_or_build_graph(key, streams, [&]() -> std::unique_ptr<BuiltGraph> { return make(); }));
    }

    // The part kept for `owner`, else the one `make` makes.
    template <typename T> T & extension(const void * owner, const std::function<std::unique_ptr<T>()> & make) {
        std::unique_ptr<ContextExtension> & cached = extensions_[owner];
        if (!cached) {
            cached = make();
        }
        return static_cast<T &>(*cached);
    }

    // Allocates the graph so that its inputs can be set ...
    void prepare(BuiltGraph & built);
    // ... and computes it.
    void compute(BuiltGraph & built);
    // Upper limit of threads for large graphs from now on, because other contexts may be computing too.
    void limit_threads(int n) { n_threads_ = n; }

    int64_t n_computes() const { return n_computes_; } // graphs computed so far
    int64_t n_built() const { return n_built_; }       // graphs built so far
    // Rows of tokens that went through the layers so far; those who compute a graph over tokens count them.
    int64_t n_token_rows() const { return n_token_rows_; }
    void    count_token_rows(size_t n) { n_token_rows_ += int64_t(n); }
    size_t  n_bytes() const { return cache_.n_bytes() + workspace_.bytes(); }
    size_t  n_graphs() const { return graphs_.size(); }

  private:
    BuiltGraph & find_or_build_graph(const std::string & key, const std::vector<int> & streams,
                                     const std::function<std::unique_ptr<BuiltGraph>()> & make);

    struct CachedGraph {
        std::string                 key;
        std::unique_ptr<BuiltGraph> built;
        size_t                      n_bytes;
    };

    const Backbone &                                          model_;
    ContextOptions                                            options_;
    Backend                                                   backend_;
    SequenceCache                                             cache_;
    Workspace                                                 workspace_;
    std::list<CachedGraph>                                    graphs_; // most recently used first
    size_t                                                    graph_bytes_ = 0;
    std::map<const void *, std::unique_ptr<ContextExtension>> extensions_;
    int                                                       n_threads_;
    int64_t                                                   n_computes_ = 0, n_built_ = 0, n_token_rows_ = 0;
};

} // namespace penelope
