// The mutable state a method fills and decoding goes on from: the cache of one or more sequences, a backend of its own, and
// graphs kept for reuse. One thread at a time.
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
    int       n_batch   = 512; // prompt rows per graph
    int       bucket    = 1;   // prompt lengths are rounded up to a multiple, so that one graph serves several
    bool swap_latents = false; // a sweep answers each question from the memory and readout of the next one in its batch
    bool batch_invariant = false; // sequences side by side get the bits they would get alone (graph/batch_invariance.h)
};

class Context;

// A graph with the handles needed to fill its inputs and read its outputs; derived per kind of graph.
struct BuiltGraph {
    explicit BuiltGraph(const Context & context, int n_sequences = 1);
    virtual ~BuiltGraph() = default;
    Graph graph;

    std::vector<int>        streams;          // the sequences it works on now ...
    std::vector<StreamView> views;            // ... and where it looks at what they left
    bool                    is_small = false; // one thread computes it sooner than several
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
    // For RowInputs: how many sequences lie side by side in a cache that the device attends to in one go; 0: it does not.
    int n_batched_streams() const { return backend_.is_cpu_only() && options_.n_streams > 1 ? options_.n_streams : 0; }
    // Where the modules lie, and what a latent method keeps between its steps.
    const DeviceInfo & latent_device() const {
        return backend_.device_backend(size_t(model_.latent_device_id)).device();
    }

    // The graph kept under `key`, moved to these streams, else the one `make` builds for them. The least recently used ones are dropped.
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

    // Gives the graph memory so that its inputs can be filled ...
    void prepare(BuiltGraph & built);
    // ... and computes it.
    void compute(BuiltGraph & built);
    // Threads a large graph may take from now on, of those in the options: others may be computing too.
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
