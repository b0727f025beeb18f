#include "model/sequence_cache.h"

#include "base/error.h"
#include "base/memory.h"

#include <algorithm>
#include <numeric>

namespace penelope {

namespace {

// Aligns the recurrent state of every stream for any device.
constexpr int64_t kAlignedFloats = 64;

// Checkpoints per stream: two for each of the last four turns of a conversation.
constexpr size_t kMaxCheckpoints = 8;

// Rows per stream, rounded up so that the next stream starts at an aligned address.
int aligned_rows(int n_rows, size_t row_size, size_t alignment) {
    const size_t unit = alignment / std::gcd(alignment, row_size);
    return int((size_t(n_rows) + unit - 1) / unit * unit);
}

} // namespace

SequenceCache::SequenceCache(const Backbone & model, int n_streams, int n_rows, ggml_type type, const Backend & backend)
    : n_streams_(n_streams), n_rows_(n_rows), type_(type), n_recurrent_(n_recurrent(model)) {
    const ModelConfig & config = model.config;
    if (config.head_dim % ggml_blck_size(type) != 0) {
        throw Error(ErrorKind::usage,
                    std::string("cache type ") + ggml_type_name(type) + ": needs a head width that is a multiple of " +
                        std::to_string(ggml_blck_size(type)) + ", the model has " + std::to_string(config.head_dim),
                    "use --kv-type f16");
    }
    size_t alignment = 1;
    for (size_t i = 0; i < backend.n_devices(); i++) {
        alignment = std::lcm(alignment, ggml_backend_buft_get_alignment(backend.device_backend(i).buffer_type()));
        contexts_.push_back(new_tensor_context(size_t(config.n_layer) * 16));
    }
    stride_ = aligned_rows(n_rows + 1, ggml_row_size(type, config.n_embd_kv()), alignment);
    for (int il = 0; il < config.n_layer; il++) {
        const StateShape shape = model.layers[size_t(il)]->state(config);
        LayerStore       layer;
        ggml_context *   ctx = contexts_[size_t(model.device_of(il))].get();
        if (shape.has_kv) {
            for (Node * node : { &layer.kv.k, &layer.kv.v }) {
                *node = ggml_new_tensor_2d(ctx, type, config.n_embd_kv(), int64_t(stride_) * n_streams);
                ggml_format_name(*node, "cache.%s.%d", node == &layer.kv.k ? "k" : "v", il);
            }
        }
        layer.sizes = shape.recurrent;
        for (int64_t n : shape.recurrent) {
            for (Recurrent * slot : { &layer.current, &layer.prompt_end }) {
                slot->push_back(ggml_new_tensor_2d(ctx, GGML_TYPE_F32, GGML_PAD(n, kAlignedFloats), n_streams));
                ggml_format_name(slot->back(), "cache.%s.%d", slot == &layer.current ? "current" : "prompt_end", il);
            }
        }
        layers_.push_back(std::move(layer));
    }
    for (size_t i = 0; i < backend.n_devices(); i++) {
        const Backend &   part   = backend.device_backend(i);
        const std::string what   = "KV cache for " + std::to_string(n_rows) + " tokens";
        size_t            needed = 0;
        for (Node node = ggml_get_first_tensor(contexts_[i].get()); node;
             node      = ggml_get_next_tensor(contexts_[i].get(), node)) {
            needed += ggml_nbytes(node);
        }
        if (part.device().is_cpu) {
            require_memory(needed, what, "use a smaller -c");
        }
        buffers_.emplace_back(ggml_backend_alloc_ctx_tensors_from_buft(contexts_[i].get(), part.buffer_type()));
        if (!buffers_.back()) {
            throw device_memory_error(what, needed, part.device(), "use a smaller -c");
        }
    }
    clear();
}

// Attention multiplies masked rows by zero, and 0 * NaN is NaN. So the cache must not contain NaN.
void SequenceCache::clear() {
    checkpoints_.clear();
    for (const ggml_backend_buffer_ptr & buffer : buffers_) {
        clear_buffer(buffer.get());
    }
}

// Recurrent states need no clearing: read_recurrent() returns zeros at position 0.
void SequenceCache::clear(int stream) {
    checkpoints_.remove_if([&](const StateCheckpoint & one) { return one.stream == stream; });
    for (const LayerStore & layer : layers_) {
        for (Node all : { layer.kv.k, layer.kv.v }) {
            if (all) {
                clear_bytes(all, size_t(cache_row(stream, 0)) * all->nb[1], size_t(stride_) * all->nb[1]);
            }
        }
    }
}

void SequenceCache::write(Graph & g, int il, Node k, Node v, const RowLayout & rows) {
    const Kv & kv = layers_[size_t(il)].kv;
    g.expand(ggml_set_rows(g.ctx(), kv.k, k, rows.cache_rows));
    g.expand(ggml_set_rows(g.ctx(), kv.v, v, rows.cache_rows));
}

Kv SequenceCache::read(Graph & g, int il, const Segment & segment) {
    const auto rows_of = [&](Node all) {
        return ggml_view_2d(g.ctx(), all, all->ne[0], segment.n_kv, all->nb[1],
                            size_t(cache_row(segment.stream, 0)) * all->nb[1]);
    };
    const Kv & kv = layers_[size_t(il)].kv;
    return { rows_of(kv.k), rows_of(kv.v) };
}

Kv SequenceCache::read_all(Graph & g, int il, int n_kv) {
    const auto rows_of = [&](Node all) {
        return ggml_view_3d(g.ctx(), all, all->ne[0], n_kv, n_streams_, all->nb[1], size_t(stride_) * all->nb[1], 0);
    };
    const Kv & kv = layers_[size_t(il)].kv;
    return { rows_of(kv.k), rows_of(kv.v) };
}

Node SequenceCache::state_view(Graph & g, const LayerStore & layer, StateSlot slot, size_t i, int stream) const {
    Node all = (slot == StateSlot::prompt_end ? layer.prompt_end : layer.current)[i];
    return ggml_view_1d(g.ctx(), all, layer.sizes[i], size_t(stream) * all->nb[1]);
}

std::vector<Node> SequenceCache::read_recurrent(Graph & g, int il, const Segment & segment) {
    const LayerStore & layer = layers_[size_t(il)];
    std::vector<Node>  state;
    for (size_t i = 0; i < layer.sizes.size(); i++) {
        Node held = state_view(g, layer, segment.from, i, segment.stream);
        state.push_back(segment.row > 0 ? held : ggml_fill(g.ctx(), held, 0.0f));
    }
    return state;
}

void SequenceCache::write_recurrent(Graph & g, int il, const Segment & segment, const std::vector<Node> & state) {
    if (segment.to == StateSlot::discard) {
        return;
    }
    for (size_t i = 0; i < state.size(); i++) {
        g.expand(ggml_cpy(g.ctx(), state[i], state_view(g, layers_[size_t(il)], segment.to, i, segment.stream)));
    }
}

void SequenceCache::copy_state(int stream, StateSlot slot, std::vector<float> & values, bool into_cache) {
    size_t done = 0;
    for (const LayerStore & layer : layers_) {
        for (size_t i = 0; i < layer.sizes.size(); i++) {
            Node         all = (slot == StateSlot::prompt_end ? layer.prompt_end : layer.current)[i];
            const size_t n = size_t(layer.sizes[i]), offset = size_t(stream) * all->nb[1];
            if (into_cache) {
                set_bytes(all, offset, values.data() + done, n * sizeof(float));
            } else {
                get_bytes(all, offset, values.data() + done, n * sizeof(float));
            }
            done += n;
        }
    }
}

void SequenceCache::save_checkpoint(int stream, int position, StateSlot slot) {
    if (n_recurrent_ == 0) {
        return;
    }
    const auto of_stream = [&](const StateCheckpoint & one) { return one.stream == stream; };
    if (size_t(std::count_if(checkpoints_.begin(), checkpoints_.end(), of_stream)) == kMaxCheckpoints) {
        checkpoints_.erase(std::find_if(checkpoints_.begin(), checkpoints_.end(), of_stream));
    }
    checkpoints_.push_back({ stream, position, std::vector<float>(size_t(n_recurrent_)) });
    copy_state(stream, slot, checkpoints_.back().values, false);
}

void SequenceCache::forget_after(int stream, int position) {
    checkpoints_.remove_if(
        [&](const StateCheckpoint & one) { return one.stream == stream && one.position > position; });
}

int SequenceCache::restore_checkpoint(int stream, int position) {
    if (n_recurrent_ == 0) {
        return position;
    }
    forget_after(stream, position);
    StateCheckpoint * newest = nullptr;
    for (StateCheckpoint & one : checkpoints_) {
        if (one.stream == stream && (!newest || one.position >= newest->position)) {
            newest = &one;
        }
    }
    if (!newest) {
        return 0;
    }
    copy_state(stream, StateSlot::current, newest->values, true);
    return newest->position;
}

size_t SequenceCache::n_bytes() const {
    size_t n = checkpoints_.size() * size_t(n_recurrent_) * sizeof(float);
    for (const ggml_backend_buffer_ptr & buffer : buffers_) {
        n += ggml_backend_buffer_get_size(buffer.get());
    }
    return n;
}

std::vector<uint8_t> SequenceCache::bytes(int il, int stream, int n) const {
    std::vector<uint8_t> all;
    const auto           append = [&](Node node, size_t offset, size_t n_bytes) {
        std::vector<uint8_t> chunk(n_bytes);
        get_bytes(node, offset, chunk.data(), chunk.size());
        all.insert(all.end(), chunk.begin(), chunk.end());
    };
    const LayerStore & layer = layers_[size_t(il)];
    if (layer.kv.k) {
        for (Node node : { layer.kv.k, layer.kv.v }) {
            append(node, size_t(cache_row(stream, 0)) * node->nb[1], size_t(n) * node->nb[1]);
        }
    }
    for (size_t i = 0; i < layer.sizes.size(); i++) {
        append(layer.prompt_end[i], size_t(stream) * layer.prompt_end[i]->nb[1],
               size_t(layer.sizes[i]) * sizeof(float));
    }
    return all;
}

void SequenceNodes::write(Graph & g, int il, Node k, Node v, const RowLayout & rows) {
    for (const Segment & segment : rows.segments) {
        std::vector<KvChunk> & chunks = chunks_[{ il, segment.stream }];
        while (!chunks.empty() && chunks.back().row >= segment.row) {
            chunks.pop_back();
        }
        chunks.push_back(
            { segment.row,
              segment.count,
              { slice_rows(g, k, segment.first, segment.count), slice_rows(g, v, segment.first, segment.count) } });
    }
}

Kv SequenceNodes::read(Graph & g, int il, const Segment & segment) {
    std::vector<Node> k, v;
    for (const KvChunk & part : chunks_[{ il, segment.stream }]) {
        if (part.row < segment.row + segment.count) {
            k.push_back(part.kv.k);
            v.push_back(part.kv.v);
        }
    }
    return { pad_rows(g, concat_rows(g, k), segment.n_kv), pad_rows(g, concat_rows(g, v), segment.n_kv) };
}

std::vector<Node> SequenceNodes::read_recurrent(Graph &, int il, const Segment & segment) {
    if (segment.row == 0) {
        return {};
    }
    const auto & states = states_[{ il, segment.stream }];
    const auto   found  = states.find(segment.row);
    GGML_ASSERT(found != states.end());
    return found->second;
}

void SequenceNodes::write_recurrent(Graph &, int il, const Segment & segment, const std::vector<Node> & state) {
    auto & states = states_[{ il, segment.stream }];
    states.erase(states.upper_bound(segment.row), states.end());
    states[segment.row + segment.count] = state;
}

} // namespace penelope
