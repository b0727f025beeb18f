// A ggml graph under construction and, once allocated, ready to be computed any number of times with new inputs.
//
// Builders put nodes into ctx() and call expand() after each layer: nodes are computed in the order of these calls, and what is
// computed early is freed early. Nobody says beforehand how many there will be.
// With a tape, the operations of graph/ops.h also record how their gradients are built.
#pragma once

#include "graph/aligned_views.h"
#include "graph/device.h"
#include "graph/memory_plan.h"
#include "graph/node_order.h"
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

// Memory for the nodes of graphs that are computed one at a time: as large as the largest of them, on every device.
class Workspace {
  public:
    explicit Workspace(const Backend & backend) : buffers_(backend.n_devices()) {}
    size_t bytes() const;

  private:
    friend class Graph;
    size_t                               bytes(size_t device_id) const;
    ggml_backend_buffer_t                reserve(const Backend & backend, size_t device_id, size_t needed);
    std::vector<ggml_backend_buffer_ptr> buffers_;
    uint64_t                             owner_ = 0; // number of the graph whose nodes lie in it now
};

// Rows [first, first + count) of a matrix that stand at places `position` and after of a sequence.
struct SeqRows {
    int64_t first, count;
    int     stream; // the sequence
    int64_t position;
};
using SeqRowsList = std::vector<SeqRows>; // in order, all rows of the matrix

class Graph {
  public:
    // backend: where it will run, so that builders can ask it; null: any device, nothing is asked.
    explicit Graph(Tape * tape = nullptr, const Backend * backend = nullptr);

    ggml_context *  ctx() { return headers_.ctx(); }   // see there before keeping it
    ggml_cgraph *   cgraph() const { return cgraph_; } // known after plan() or allocate()
    Tape *          tape() const { return tape_; }
    const Backend * backend() const { return backend_; }
    // Whether the device runs this node; true when nobody said which device.
    bool supports(Node node) const {
        return !backend_ || ggml_backend_supports_op(backend_->device_backend(size_t(device_id_)).get(), node);
    }
    // Lets the operations that follow record on another tape, or on none. Returns the one before.
    Tape * set_tape(Tape * tape);

    // A tensor the host fills before each compute(). F32 unless said otherwise.
    Node input(const std::string & name, ggml_type type, int64_t ne0, int64_t ne1 = 1, int64_t ne2 = 1);

    // Puts aside what an input will hold: compute() sends all inputs to the device in one upload. After allocate().
    void                       set(Node input, const void * data, size_t n_bytes);
    template <typename T> void set(Node input, const std::vector<T> & values) {
        set(input, values.data(), values.size() * sizeof(T));
    }

    // An input that fills itself before each compute(). The one of that name when the graph has it already.
    Node filled_input(const std::string & name, ggml_type type, int64_t ne0, int64_t ne1,
                      std::function<void(Graph &, Node)> fill);

    // Gives the node a name as printf does and returns it.
    Node named(Node node, const char * format, ...) const __attribute__((format(printf, 3, 4)));

    void expand(Node node);
    // Nodes that are expanded from here on run on this device of the backend, unless a weight they read lies elsewhere.
    void set_device(int device_id) { device_id_ = device_id; }
    // Once `from` is computed the host makes the contents of `to`, an input, from it, before anything put down later runs.
    void host_callback(Node from, Node to, std::function<std::vector<float>(const std::vector<float> &)> work);
    // A place where compute() looks whether it should stop. Only devices need it that cannot look by themselves, as the CPU does.
    void add_abort_point(Node node);
    // Expands, and keeps the node's memory from being reused so that the host can read it after compute().
    void output(Node node);

    // Marks `node` as produced by one application of one decoder layer. The count that is reported is taken from the marks
    // found in the finished graph, never from a formula.
    void mark_layer_application(Node node);
    int  n_layer_applications() const { return n_layer_applications_; } // known after allocate()
    int  n_layer_marks() const { return int(layer_marks_.size()); }     // so far, while building

    // How many sequences lie side by side in its matrices. A product whose rows are shared out evenly among them gives each the
    // bits it would get alone (graph/batch_invariance.h).
    void set_n_sequences(int n) { n_sequences_ = n; }
    int  n_sequences() const { return n_sequences_; }

    // While rebuilding, operations are put down a second time for their gradients: marks are not taken again.
    bool set_recomputing(bool recomputing); // returns what it was

    // Numbers the random draws of the graph in the order they are built: a draw and its repetition while rebuilding share one.
    int64_t next_draw() { return n_draws_++; }
    int64_t set_next_draw(int64_t draw); // returns what it was

    // Whose rows the matrices of the layer under construction hold, for random draws that follow the sequence and not its
    // place in the matrix; null: nobody's.
    void set_seq_rows(std::shared_ptr<const SeqRowsList> spans) { seq_rows_ = std::move(spans); }
    const std::shared_ptr<const SeqRowsList> & seq_rows() const { return seq_rows_; }

    // x as products with packed weights read it (graph/packed_product.h); null until the first of them makes it.
    Node & quantized(Node x) { return quantized_[x]; }

    // Keeps something alive as long as the graph: what custom operations point to.
    void retain(std::shared_ptr<const void> thing) { retained_.push_back(std::move(thing)); }

    // Finds memory for every node, in the workspace or in one of its own. Throws Error(device) for an operation the device
    // lacks and Error(memory) with both sizes when the buffer does not fit. In a shared workspace it is called before each
    // round of filling inputs and computing; it costs nothing while no other graph has used the workspace since.
    void allocate(const Backend & backend, Workspace & workspace);
    void allocate(const Backend & backend);
    // Bytes of workspace it needs, without taking them; nothing can be added to the graph afterwards.
    size_t plan(const Backend & backend);
    size_t n_bytes() const; // known after plan() or allocate()
    // Nodes their device cannot run.
    std::vector<Node> unsupported_nodes(const Backend & backend) const;
    int               n_nodes() const { return int(order_.nodes().size()); }
    // In the order they were expanded.
    const std::vector<Node> & nodes() const { return order_.nodes(); }
    const TensorHeaders &     headers() const { return headers_; }
    // Bytes of host memory for the headers of its tensors and the list of its nodes.
    size_t header_bytes() const;

    // Throws Error(device) when the backend reports failure or the device is lost, Error(cancelled) when the backend's
    // callback asks for it. Blocks until done.
    void compute(const Backend & backend);

  private:
    const uint64_t uid_; // of this graph alone: an address may come back, a number does not
    bool           is_staged(const Backend & backend) const { return backend.n_devices() > 1 || !callbacks_.empty(); }
    void           clear_addresses();
    void           upload_inputs();
    void           compute_stages(const Backend & backend);

    TensorHeaders                            headers_;
    NodeOrder                                order_;
    OwnedGraph                               owned_;            // of the order,
    AlignedGraph                             aligned_;          // or with copies put in between:
    ggml_cgraph *                            cgraph_ = nullptr; // lies in one of them
    Tape *                                   tape_;
    const Backend *                          backend_;
    std::unique_ptr<Workspace>               own_workspace_;
    std::vector<Node>                        layer_marks_;
    std::vector<std::shared_ptr<const void>> retained_;
    std::map<Node, Node>                     quantized_;
    int64_t                                  n_draws_ = 0;
    std::shared_ptr<const SeqRowsList>       seq_rows_;
    bool                                     recomputing_ = false;
    int                                      n_sequences_ = 1;
    std::vector<Node>                        inputs_;
    // Inputs on one device: a stretch of memory, and what it will hold.
    struct StagedInputs {
        std::vector<DeviceGraph::Input> inputs;
        std::vector<uint8_t>            bytes;
        std::map<Node, size_t>          set; // those that were set, and where in it
    };
    std::vector<StagedInputs> staged_; // by device
    struct FilledInput {
        Node                               node;
        std::function<void(Graph &, Node)> fill;
    };
    std::map<std::string, FilledInput> filled_inputs_;
    MemoryPlan                         plan_;  // of a graph in one piece,
    SplitGraph                         split_; // or of one that is cut
    std::vector<HostCallback>          callbacks_;
    int                                device_id_ = 0;
    std::vector<int>                   node_devices_; // where each node of cgraph_ should run
    bool                               is_planned_           = false;
    int                                n_layer_applications_ = 0;
    bool                               checked_              = false; // every operation is known to run on the device
};

} // namespace penelope
