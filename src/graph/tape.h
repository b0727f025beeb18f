// Reverse mode over a ggml graph. Each operation of graph/ops.h that touches something watched records a rule: given the
// gradient of its result, the rule adds nodes for the gradients of its inputs. backward() runs the rules last to first.
//
// Gradients have the shape of their tensor, are F32 and contiguous. A tensor used several times gets the sum.
// A tape inside another one (checkpoint_activations() in graph/activation_checkpoint.h) keeps what was recorded on it and hands everything else on.
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
    // One gradient per result, null for a result nothing was derived from.
    using MultiBackwardFn = std::function<void(Graph & graph, const std::vector<Node> & gradients)>;

    explicit Tape(Tape * outer = nullptr) : outer_(outer), host_kernels_(outer ? outer->host_kernels_ : true) {}
    Tape(const Tape &)             = delete;
    Tape & operator=(const Tape &) = delete;

    // Declares a leaf (weight, input) whose gradient is wanted.
    void watch(Node leaf);

    // True when `node` is watched or computed from something watched; null is never wanted.
    bool requires_grad(const ggml_tensor * node) const;

    // Seeds `result` with `gradient` and builds all gradient nodes into the graph, expanding as it goes.
    // Without a gradient the seed is one: `result` is a loss.
    void backward(Graph & graph, Node result, Node gradient = nullptr);
    void backward(Graph & graph, const std::vector<Node> & results, const std::vector<Node> & gradients);

    // What backward() found for a watched leaf; null when nothing reached it.
    Node gradient(const ggml_tensor * node) const;

    // Operations may use the kernels of graph/kernels.h, which only the CPU can run. Turned off for other devices before anything
    // is built.
    void set_host_kernels(bool use) { host_kernels_ = use; }
    bool host_kernels() const { return host_kernels_; }

    // --- for operations only

    // Says that `result` was computed from watched things and how its gradient goes on.
    void              record(Node result, BackwardFn rule);
    void              record(std::vector<Node> results, MultiBackwardFn rule);
    std::vector<Node> recorded() const; // all results so far, in order

    // Adds `gradient` to what `node` has gathered so far; ignored when node is not wanted.
    void accumulate(Graph & graph, Node node, Node gradient);

    // The same for the part of `node` that starts at `first` along dimension `dim` (0 features, 1 rows); the rest gets nothing.
    void accumulate_slice(Graph & graph, Node node, int dim, int64_t first, Node gradient);

    // For the gradient of W [n_in, n_out] in W x: expect_product() once per use when it is recorded, accumulate_product() once
    // per use in its rule with x [n_in, rows] and the gradient dy [n_out, rows] of the product. All uses of a weight become one
    // product over all their rows, built when the last one has arrived.
    void expect_product(Node weight);
    void accumulate_product(Graph & graph, Node weight, Node x, Node dy);

    // A contiguous copy of the transpose of a matrix, made once.
    Node transposed(Graph & graph, Node node);

    // The input of low-rank updates with dropout, made once for all that read x.
    struct DroppedInput {
        Node node = nullptr;
        Draw draw;
        Node recomputed = nullptr; // the same made a second time in the backward, so that the first need not be kept
    };
    DroppedInput & dropped_input(Node x) { return dropped_[x]; }

    // True for the seed of a backward() without a gradient: a rule may leave out the multiplication.
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
    std::vector<Node>                                           product_weights_; // in the order met
    std::unordered_map<const ggml_tensor *, Node>               transposed_;
    std::map<std::vector<Node>, Node>                           concat_transposed_;
    std::unordered_map<const ggml_tensor *, DroppedInput>       dropped_;
};

} // namespace penelope
