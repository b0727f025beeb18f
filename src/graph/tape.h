// Reverse-mode automatic differentiation on a ggml graph. Each operation of graph/ops.h with an input that requires a
// gradient records a backward function: given the gradient of its result, it adds nodes for the gradients of its
// inputs. backward() calls these functions last to first.
//
// A gradient has the shape of its tensor, is F32 and contiguous. Gradients of a tensor with several uses are summed.
// Tapes nest for activation checkpointing (graph/activation_checkpoint.h): an inner tape owns what was recorded on it
// and forwards everything else to the outer one.
#pragma once

#include "graph/dropout.h"

#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

namespace penelope {

class Tape {
  public:
    using BackwardFn = std::function<void(Graph & graph, Node gradient)>;
    // One gradient per result; null for a result that did not contribute to the loss.
    using MultiBackwardFn = std::function<void(Graph & graph, const std::vector<Node> & gradients)>;

    explicit Tape(Tape * outer = nullptr) : outer_(outer), host_kernels_(outer ? outer->host_kernels_ : true) {}
    Tape(const Tape &)             = delete;
    Tape & operator=(const Tape &) = delete;

    // Declares a leaf (weight or input) that requires a gradient.
    void watch(Node leaf);

    // True when `node` is watched or computed from a watched node. False for null.
    bool requires_grad(const ggml_tensor * node) const;

    // Builds all gradient nodes into the graph, starting from `gradient`, the gradient of `result`. Null: `result` is
    // the loss and its gradient is 1.
    void backward(Graph & graph, Node result, Node gradient = nullptr);
    void backward(Graph & graph, const std::vector<Node> & results, const std::vector<Node> & gradients);

    // The gradient of a watched leaf after backward(); null when the loss does not depend on it.
    Node gradient(const ggml_tensor * node) const;

    // Whether operations may use the CPU kernels of graph/kernels.h. Turn off before building a graph for another
    // device.
    void set_host_kernels(bool use) { host_kernels_ = use; }
    bool host_kernels() const { return host_kernels_; }

    // --- for operations only

    // Records the backward function of `result`; `result` then requires a gradient.
    void              record(Node result, BackwardFn rule);
    void              record(std::vector<Node> results, MultiBackwardFn rule);
    std::vector<Node> recorded() const; // all results so far, in order

    // Adds `gradient` to the gradient of `node`. Does nothing when node requires none.
    void accumulate(Graph & graph, Node node, Node gradient);

    // The same for a slice of `node` starting at `first` along dimension `dim` (0 features, 1 rows).
    void accumulate_slice(Graph & graph, Node node, int dim, int64_t first, Node gradient);

    // Gradient of a weight W [n_in, n_out] that is used in several products W x. Each use calls expect_product() when
    // it is recorded and accumulate_product() in its backward, with x [n_in, rows] and dy [n_out, rows]. When the last
    // use has arrived, one product over the concatenated rows of all uses is built.
    void expect_product(Node weight);
    void accumulate_product(Graph & graph, Node weight, Node x, Node dy);

    // A contiguous transpose of a matrix, built once and cached.
    Node transposed(Graph & graph, Node node);

    // dropout(x) for LoRA, shared by all LoRA pairs that read x.
    struct DroppedInput {
        Node node = nullptr;
        Draw draw;
        Node recomputed = nullptr; // dropout(x) rebuilt in the backward, so that `node` can be freed after the forward
    };
    DroppedInput & dropped_input(Node x) { return dropped_[x]; }

    // True for the gradient 1 of a loss: a backward function may skip the multiplication.
    bool is_unit_seed(const ggml_tensor * node) const;

  private:
    struct Entry {
        std::vector<Node> results;
        MultiBackwardFn   rule;
    };
    struct Slice {
        int     dim;
        int64_t first;
        Node    gradient;
    };
    struct Product {
        int               n_expected = 0;
        std::vector<Node> x;
        std::vector<Node> dy;
    };

    bool owns(const ggml_tensor * node) const { return requires_grad_.count(node) > 0; }
    Node finalize_grad(Graph & graph, Node node);
    void build_product(Graph & graph, Node weight);
    Node concat_transposed(Graph & graph, const std::vector<Node> & parts);

    Tape *                                                      outer_;
    bool                                                        host_kernels_;
    Node                                                        one_ = nullptr;
    std::vector<Entry>                                          entries_;
    std::vector<Node>                                           leaves_;
    std::unordered_map<const ggml_tensor *, bool>               requires_grad_;
    std::unordered_map<const ggml_tensor *, Node>               gradients_;
    std::unordered_map<const ggml_tensor *, std::vector<Slice>> slices_;
    std::map<const ggml_tensor *, Product>                      products_;
    std::vector<Node>                                           product_weights_; // keys of products_, in order of use
    std::unordered_map<const ggml_tensor *, Node>               transposed_;
    std::map<std::vector<Node>, Node>                           concat_transposed_;
    std::unordered_map<const ggml_tensor *, DroppedInput>       dropped_;
};

} // namespace penelope
