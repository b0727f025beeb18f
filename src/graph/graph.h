// A ggml compute graph: built once, allocated once, computed many times with new inputs.
//
// Life of a graph:
//   1. build      create nodes in ctx() and call expand() after each layer. Nodes run in the order they were expanded,
//                 so expanding early lets the memory planner free activations early. The number of nodes is not
//                 limited.
//   2. allocate   plan the memory (graph/memory_plan.h) and assign addresses in a buffer. A graph that uses several
//                 devices or host callbacks is first split into stages (graph/split_graph.h).
//   3. set        stage the values of the inputs on the host.
//   4. compute    upload the inputs and run. Repeat 3 and 4 as often as needed.
// With a tape (training), the operations of graph/ops.h also record how their gradients are built; see graph/tape.h.
#pragma once

#include "graph/aligned_views.h"
#include "graph/device.h"
#include "graph/memory_plan.h"
#include "graph/node_order.h"
#include "graph/seq_range.h"
#include "graph/split_graph.h"
#include "graph/tensor_headers.h"
#include "graph/transfer.h"

#include <cstdarg>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace penelope {

class Graph;
class Tape;

// The compute buffer, one per device. Graphs that run one at a time share it: it is as large as the largest of them.
class Workspace {
  public:
    explicit Workspace(const Backend & backend) : buffers_(backend.n_devices()) {}
    size_t bytes() const;

  private:
    friend class Graph;
    size_t                               bytes(size_t device_id) const;
    ggml_backend_buffer_t                reserve(const Backend & backend, size_t device_id, size_t needed);
    std::vector<ggml_backend_buffer_ptr> buffers_;
    uint64_t                             owner_ = 0; // uid of the graph whose nodes have addresses in it now
};

class Graph {
  public:
    // backend: where the graph will run, so that builders can check op support. Null: any device, no checks.
    explicit Graph(Tape * tape = nullptr, const Backend * backend = nullptr);

    ggml_context *  ctx() { return headers_.ctx(); }   // read TensorHeaders::ctx() before storing it in a variable
    ggml_cgraph *   cgraph() const { return cgraph_; } // known after plan() or allocate()
    Tape *          tape() const { return tape_; }
    const Backend * backend() const { return backend_; }
    // Whether the current device supports this node; always true without a backend.
    bool supports(Node node) const {
        return !backend_ || ggml_backend_supports_op(backend_->device_backend(size_t(device_id_)).get(), node);
    }
    // The operations that follow record on this tape (null: none). Returns the previous tape.
    Tape * set_tape(Tape * tape);

    // A tensor whose values the host sets before each compute().
    Node input(const std::string & name, ggml_type type, int64_t ne0, int64_t ne1 = 1, int64_t ne2 = 1);

    // Stages the value of an input on the host. compute() uploads all staged inputs at once. Call after allocate().
    void                       set(Node input, const void * data, size_t n_bytes);
    template <typename T> void set(Node input, const std::vector<T> & values) {
        set(input, values.data(), values.size() * sizeof(T));
    }

    // An input with a callback that sets it before each compute(). Returns the existing one if the name is taken.
    Node filled_input(const std::string & name, ggml_type type, int64_t ne0, int64_t ne1,
                      std::function<void(Graph &, Node)> fill);

    // Sets the node's name, printf style, and returns the node.
    Node named(Node node, const char * format, ...) const __attribute__((format(printf, 3, 4)));

    // Appends the node and everything it depends on to the execution order (ggml_build_forward_expand).
    void expand(Node node);
    // Nodes expanded from here on run on this device of the backend, unless they read a weight stored on another one.
    void set_device(int device_id) { device_id_ = device_id; }
    // Host callback: as soon as `from` is computed, the host computes the input `to` from it. Nodes expanded later run
    // after the callback. Splits the graph.
    void host_callback(Node from, Node to, std::function<std::vector<float>(const std::vector<float> &)> work);
    // After this node compute() checks whether to abort. Only for GPUs: ggml's CPU backend checks after every node.
    void add_abort_point(Node node);
    // Expands the node and keeps its memory from being reused, so that the host can read it after compute().
    void output(Node node);

    // Marks `node` as the result of one decoder layer. The number of layer applications that is reported counts the
    // marks found in the finished graph; it is never computed from a formula.
    void mark_layer_application(Node node);
    int  n_layer_applications() const { return n_layer_applications_; } // known after allocate()
    int  n_layer_marks() const { return int(layer_marks_.size()); }     // marks so far, while building

    // Number of sequences in the batch, with equally many rows each. Matrix products use it to give every sequence the
    // same bits as if it ran alone (graph/batch_invariance.h).
    void set_n_sequences(int n) { n_sequences_ = n; }
    int  n_sequences() const { return n_sequences_; }

    // True while activation checkpointing builds nodes a second time: layer marks are ignored then.
    bool set_recomputing(bool recomputing); // returns the previous value

    // Number of the next dropout mask. A recomputed operation gets the same number, hence the same mask.
    int64_t next_draw() { return n_draws_++; }
    int64_t set_next_draw(int64_t draw); // returns the previous value

    // Which sequence and position each row of the current matrices belongs to: ranges that cover all rows in order.
    // Dropout masks depend on that and not on the row's index in the batch. Null: unknown.
    void set_dropout_rows(std::shared_ptr<const std::vector<SeqRange>> rows) { dropout_rows_ = std::move(rows); }
    const auto & dropout_rows() const { return dropout_rows_; }

    // x quantized for products with packed weights (graph/packed_product.h), shared by all of them; null until the
    // first.
    Node & quantized(Node x) { return quantized_[x]; }

    // Keeps data that custom operations point to alive as long as the graph.
    void retain(std::shared_ptr<const void> thing) { retained_.push_back(std::move(thing)); }

    // Assigns memory to every node, in a shared workspace or in one of its own. Throws Error(device) for an operation
    // the device does not support and Error(memory), with needed and free bytes, when the buffer does not fit. With a
    // shared workspace call it before each round of set() and compute(): it does nothing unless another graph used the
    // workspace.
    void allocate(const Backend & backend, Workspace & workspace);
    void allocate(const Backend & backend);
    // Bytes of workspace the graph needs; allocates nothing. No nodes can be added afterwards.
    size_t plan(const Backend & backend);
    size_t n_bytes() const; // known after plan() or allocate()
    // Nodes that their device does not support.
    std::vector<Node> unsupported_nodes(const Backend & backend) const;
    int               n_nodes() const { return int(order_.nodes().size()); }
    // In execution order.
    const std::vector<Node> & nodes() const { return order_.nodes(); }
    const TensorHeaders &     headers() const { return headers_; }
    // Bytes of host memory for tensor structs and node lists.
    size_t header_bytes() const;

    // Runs the graph and waits for it. Throws Error(device) when the backend fails or the device is lost, and
    // Error(cancelled) when the backend's abort callback returns true.
    void compute(const Backend & backend);

  private:
    const uint64_t uid_; // unique in the process; an address could be reused
    bool           is_staged(const Backend & backend) const { return backend.n_devices() > 1 || !callbacks_.empty(); }
    void           clear_addresses();
    void           upload_inputs();
    void           compute_stages(const Backend & backend);

    TensorHeaders                                headers_;
    NodeOrder                                    order_;
    OwnedGraph                                   owned_;   // the nodes as expanded
    AlignedGraph                                 aligned_; // the same with copies of unaligned views, if needed
    ggml_cgraph *                                cgraph_ = nullptr; // points into owned_ or aligned_
    Tape *                                       tape_;
    const Backend *                              backend_;
    std::unique_ptr<Workspace>                   own_workspace_;
    std::vector<Node>                            layer_marks_;
    std::vector<std::shared_ptr<const void>>     retained_;
    std::map<Node, Node>                         quantized_;
    int64_t                                      n_draws_ = 0;
    std::shared_ptr<const std::vector<SeqRange>> dropout_rows_;
    bool                                         recomputing_ = false;
    int                                          n_sequences_ = 1;
    std::vector<Node>                            inputs_;
    // The inputs on one device: contiguous in device memory, with a host copy of the whole block.
    struct StagedInputs {
        std::vector<DeviceGraph::Input> inputs;
        std::vector<uint8_t>            bytes;
        std::map<Node, size_t>          set; // inputs that have been set -> offset in bytes
    };
    std::vector<StagedInputs> staged_; // by device
    struct FilledInput {
        Node                               node;
        std::function<void(Graph &, Node)> fill;
    };
    std::map<std::string, FilledInput> filled_inputs_;
    MemoryPlan                         plan_;  // for one device without host callbacks
    SplitGraph                         split_; // otherwise
    std::vector<HostCallback>          callbacks_;
    int                                device_id_ = 0;
    std::vector<int>                   node_devices_; // preferred device of each node
    bool                               is_planned_           = false;
    int                                n_layer_applications_ = 0;
    bool                               checked_              = false; // op support has been checked
};

} // namespace penelope
