// The two stores of what sequences leave behind. SequenceCache keeps it on the device across graphs (inference). SequenceNodes
// keeps it as nodes of the graph being built, so that gradients flow through it (training). Both follow the rule of
// arch/sequence_state.h.
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
    // n_rows per sequence. Throws Error(memory) with both sizes when it does not fit, Error(usage) for a type the shape forbids.
    SequenceCache(const Backbone & model, int n_streams, int n_rows, ggml_type type, const Backend & backend);

    void              write(Graph & g, int il, Node k, Node v, const RowLayout & rows) override;
    Kv                read(Graph & g, int il, const Segment & segment) override;
    Kv                read_all(Graph & g, int il, int n_kv) override;
    std::vector<Node> read_recurrent(Graph & g, int il, const Segment & segment) override;
    void write_recurrent(Graph & g, int il, const Segment & segment, const std::vector<Node> & state) override;

    // Going back to an earlier place of a sequence. Keys and values can at any place; a recurrent layer only where its state was
    // put aside: keep() does so for what the sequence left up to `position`, where `slot` stands. restore() goes back to the newest place
    // at or before `position` that can be gone back to and returns it (0: the beginning); what lies behind `position` is forgotten.
    // forget_after() only forgets: the state of the sequence stays where it is.
    bool is_recurrent() const { return n_recurrent_ > 0; } // some layer is
    void save_checkpoint(int stream, int position, StateSlot slot);
    int  restore_checkpoint(int stream, int position);
    void forget_after(int stream, int position);

    // Forgets everything, or one sequence, NaN included: for a request that failed half-way.
    void clear();
    void clear(int stream);

    // What cache_rows must hold for a row of a sequence; padding_row() is a place nobody reads, for padding.
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
    // What the prompt left in one layer of a sequence, for tests and tools: rows [0, n) as stored, or the recurrent state in the
    // anchor.
    std::vector<uint8_t> bytes(int il, int stream, int n) const;

  private:
    // The recurrent state of one layer in one hold: tensors [n, n_streams], rows padded so that each starts aligned.
    using Recurrent = std::vector<Node>;
    struct LayerStore {
        Kv                   kv{}; // [head_dim * n_head_kv, stride * n_streams]; null in a recurrent layer
        std::vector<int64_t> sizes;
        Recurrent            current, prompt_end;
    };
    struct StateCheckpoint {
        int                stream, position;
        std::vector<float> values; // of all recurrent layers, one after the other
    };
    void copy_state(int stream, StateSlot slot, std::vector<float> & values, bool into_cache);
    Node state_view(Graph & g, const LayerStore & layer, StateSlot slot, size_t i, int stream) const;

    int                        n_streams_, n_rows_, stride_;
    ggml_type                  type_;
    std::vector<LayerStore>    layers_;
    int64_t                    n_recurrent_;
    std::list<StateCheckpoint> checkpoints_; // oldest first

    std::vector<ggml_context_ptr>        contexts_; // of each device, with the layers that lie there
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
    std::map<std::pair<int, int>, std::map<int, std::vector<Node>>> states_; // by (layer, stream), then place
};

} // namespace penelope
