#include "model/kv.h"

#include "base/error.h"
#include "base/format.h"
#include "base/memory.h"

namespace penelope {

size_t KvCache::bytes_per_row(const ModelConfig & config, ggml_type type) {
    return size_t(config.n_layer) * 2 * ggml_row_size(type, config.n_embd_kv());
}

KvCache::KvCache(const ModelConfig & config, int n_streams, int n_rows, ggml_type type, const Backend & backend)
    : n_streams_(n_streams), n_rows_(n_rows), stride_(n_rows + 1), type_(type) {
    if (config.head_dim % ggml_blck_size(type) != 0) {
        throw Error(ErrorKind::usage,
                    std::string("cache type ") + ggml_type_name(type) + ": needs a head width that is a multiple of " +
                        std::to_string(ggml_blck_size(type)) + ", the model has " + std::to_string(config.head_dim),
                    "use --kv-type f16");
    }
    const size_t needed = bytes_per_row(config, type) * size_t(stride_) * size_t(n_streams);
    if (backend.device().is_cpu) {
        require_memory(needed, "context of " + std::to_string(n_rows) + " rows", "use a smaller -c");
    }
    ctx_ = new_tensor_context(size_t(config.n_layer) * 2);
    for (int il = 0; il < config.n_layer; il++) {
        Kv layer{};
        for (Node * node : { &layer.k, &layer.v }) {
            *node = ggml_new_tensor_2d(ctx_.get(), type, config.n_embd_kv(), int64_t(stride_) * n_streams);
            ggml_format_name(*node, "cache.%s.%d", node == &layer.k ? "k" : "v", il);
        }
        layers_.push_back(layer);
    }
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(ctx_.get(), backend.buffer_type()));
    if (!buffer_) {
        throw Error(ErrorKind::memory,
                    "context of " + std::to_string(n_rows) + " rows: " + format_bytes(needed) +
                        " cannot be allocated on " + backend.device().name,
                    "use a smaller -c");
    }
    // Masked rows are multiplied by zero weights: they must not hold NaN.
    ggml_backend_buffer_clear(buffer_.get(), 0);
}

void KvCache::write(Graph & g, int il, Node k, Node v, const Rows & rows) {
    g.expand(ggml_set_rows(g.ctx(), layers_[il].k, k, rows.cache_rows));
    g.expand(ggml_set_rows(g.ctx(), layers_[il].v, v, rows.cache_rows));
}

Kv KvCache::read(Graph & g, int il, const Segment & segment) {
    const auto rows_of = [&](Node all) {
        return ggml_view_2d(g.ctx(), all, all->ne[0], segment.n_kv, all->nb[1],
                            size_t(cache_row(segment.stream, 0)) * all->nb[1]);
    };
    return { rows_of(layers_[il].k), rows_of(layers_[il].v) };
}

size_t KvCache::n_bytes() const {
    return ggml_backend_buffer_get_size(buffer_.get());
}

std::vector<uint8_t> KvCache::bytes(int il, int stream, int n) const {
    std::vector<uint8_t> all;
    for (Node node : { layers_[il].k, layers_[il].v }) {
        std::vector<uint8_t> part(size_t(n) * node->nb[1]);
        ggml_backend_tensor_get(node, part.data(), size_t(cache_row(stream, 0)) * node->nb[1], part.size());
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

void KvNodes::write(Graph & g, int il, Node k, Node v, const Rows & rows) {
    for (const Segment & segment : rows.segments) {
        std::vector<Part> & parts = parts_[{ il, segment.stream }];
        while (!parts.empty() && parts.back().row >= segment.row) {
            parts.pop_back();
        }
        parts.push_back(
            { segment.row,
              segment.count,
              { slice_rows(g, k, segment.first, segment.count), slice_rows(g, v, segment.first, segment.count) } });
    }
}

Kv KvNodes::read(Graph & g, int il, const Segment & segment) {
    std::vector<Node> k, v;
    for (const Part & part : parts_[{ il, segment.stream }]) {
        if (part.row < segment.row + segment.count) {
            k.push_back(part.kv.k);
            v.push_back(part.kv.v);
        }
    }
    return { pad_rows(g, concat_rows(g, k), segment.n_kv), pad_rows(g, concat_rows(g, v), segment.n_kv) };
}

} // namespace penelope
