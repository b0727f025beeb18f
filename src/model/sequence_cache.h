// The KV cache and the recurrent state of sequences, in two forms with one interface (arch/sequence_state.h):
//
//   SequenceCache   inference. Buffers on the device that persist across graphs: per layer K and V
//                   [n_embd_kv, n_streams * rows per stream], and for recurrent layers (Qwen3.5's delta nets) a state
//                   of fixed size per stream.
//   SequenceNodes   training. Keys, values and states are nodes of the graph being built, so that gradients flow
//                   through them. Nothing persists.
//
// A stream is what llama.cpp calls a sequence id: one slot of the cache, holding one sequence. Row r of a stream holds
// position r.
//
// Dropping the end of a sequence is free for a KV cache: later rows are overwritten and masked. A recurrent state
// cannot go back, so SequenceCache has two slots for it (StateSlot::current and StateSlot::prompt_end) and also saves
// checkpoints of it in host memory, for reusing the prefix of a prompt in a later request.
#pragma once

#include "arch/sequence_state.h"
#include "model/backbone.h"

#include <algorithm>
#include <list>
#include <map>
#include <vector>

namespace penelope {

class SequenceCache : public SequenceState {
  public:
    // n_rows: context size in tokens per stream. type: of K and V. Throws Error(memory), with needed and free bytes,
    // when it does not fit and Error(usage) for a quantized type whose block size does not divide head_dim.
    SequenceCache(const Backbone & model, int n_streams, int n_rows, ggml_type type, const Backend & backend);

    int               n_ctx() const override { return n_rows_; }
    void              write(Graph & g, int il, Node k, Node v, const RowLayout & rows) override;
    Kv                read(Graph & g, int il, const Segment & segment) override;
    Kv                read_all(Graph & g, int il, int n_kv) override;
    std::vector<Node> read_recurrent(Graph & g, int il, const Segment & segment) override;
    void write_recurrent(Graph & g, int il, const Segment & segment, const std::vector<Node> & state) override;

    // Checkpoints of the recurrent state. Without recurrent layers save and forget do nothing, and restore returns
    // `position`.
    bool is_recurrent() const { return n_recurrent_ > 0; } // some layer has a recurrent state
    // Saves the state in `slot`, which must be the state after the stream's first `position` rows. At most 8 per
    // stream; the oldest is dropped.
    void save_checkpoint(int stream, int position, StateSlot slot);
    // Loads the newest checkpoint at or before `position` into the current slot and returns its position (0: there is
    // none, start from the beginning). Drops checkpoints after `position`.
    int restore_checkpoint(int stream, int position);
    // Drops checkpoints after `position`, because those rows will be overwritten. The current state stays.
    void forget_after(int stream, int position);

    // Sets all streams, or one, to zeros and drops their checkpoints. Needed after a failed request, which may leave
    // NaN.
    void clear();
    void clear(int stream);

    // Row index in the K and V tensors (values of RowLayout::cache_rows). padding_row() is written by padding, never
    // read.
    int64_t cache_row(int stream, int row) const { return int64_t(stream) * stride_ + row; }
    int64_t padding_row(int stream) const { return cache_row(stream, n_rows_); }

    bool owns(Node node) const {
        return std::any_of(buffers_.begin(), buffers_.end(),
                           [&](const auto & buffer) { return buffer.get() == node->buffer; });
    }
    int       n_rows() const { return n_rows_; }
    int       n_streams() const { return n_streams_; }
    ggml_type type() const { return type_; }
    size_t    n_bytes() const;
    // For tests: one layer's cache of a stream, as stored. K and V of rows [0, n), or the recurrent state at the end of
    // the prompt.
    std::vector<uint8_t> bytes(int il, int stream, int n) const;

  private:
    // The recurrent state of one layer in one slot: tensors [n padded for alignment, n_streams].
    using Recurrent = std::vector<Node>;
    struct LayerStore {
        Kv                   kv{};  // [n_embd_kv, stride_ * n_streams]; null in a recurrent layer
        std::vector<int64_t> sizes; // elements of each tensor of the recurrent state, without padding
        Recurrent            current, prompt_end;
    };
    struct StateCheckpoint {
        int                stream, position;
        std::vector<float> values; // states of all recurrent layers, concatenated
    };
    void copy_state(int stream, StateSlot slot, std::vector<float> & values, bool into_cache);
    Node state_view(Graph & g, const LayerStore & layer, StateSlot slot, size_t i, int stream) const;

    int                        n_streams_, n_rows_, stride_; // stride_: rows per stream, n_rows_ + 1 rounded up
    ggml_type                  type_;
    std::vector<LayerStore>    layers_;
    int64_t                    n_recurrent_;
    std::list<StateCheckpoint> checkpoints_; // oldest first

    std::vector<ggml_context_ptr>        contexts_; // one per device, with the layers stored there
    std::vector<ggml_backend_buffer_ptr> buffers_;
};

class SequenceNodes : public SequenceState {
  public:
    void              write(Graph & g, int il, Node k, Node v, const RowLayout & rows) override;
    Kv                read(Graph & g, int il, const Segment & segment) override;
    std::vector<Node> read_recurrent(Graph & g, int il, const Segment & segment) override;
    void write_recurrent(Graph & g, int il, const Segment & segment, const std::vector<Node> & state) override;

  private:
    struct KvChunk {
        int row, count;
        Kv  kv;
    };
    std::map<std::pair<int, int>, std::vector<KvChunk>>             chunks_; // by (layer, stream), in order of rows
    std::map<std::pair<int, int>, std::map<int, std::vector<Node>>> states_; // by (layer, stream), then position
};

} // namespace penelope
