// AdamW over parameter groups, on the device. A group has one flat F32 buffer each for weights, gradients and the two
// moments; parameters are views into the flat weights. A group is therefore updated by one operation, and a checkpoint
// is three buffers per group and a step count. A group larger than the device's maximum buffer size is split between
// two parameters.
//
// An update: compute the graph that collect() was called on, then call step(). step() computes the global gradient
// norm; if it is finite, it clips and updates, else nothing changes.
#pragma once

#include "graph/tape.h"

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace penelope {

struct ParameterGroup {
    struct Parameter {
        std::string          name;
        std::vector<int64_t> ne; // ggml order
    };
    std::string            name;               // for messages and checkpoints
    double                 weight_decay = 0.0; // decoupled: an update subtracts lr * decay * weight
    std::vector<Parameter> parameters;
};

struct AdamWConfig {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps   = 1e-8;
};

struct UpdateResult {
    double grad_norm; // global norm before clipping
    bool   applied;   // false: the norm is not finite and weights, moments and count are untouched
};

// Limits of one buffer and of one operation.
struct OptimizerLimits {
    size_t buffer = 0; // bytes; 0: what the device allows
    // Rows of 1024 values per operation: CUDA allows 65535 rows, every Vulkan device at least 128 MiB.
    int64_t rows = 32768;
};

class Optimizer {
  public:
    // Weights, gradients and moments start at 0. Throws Error(memory) with the size needed and the size free.
    Optimizer(const Backend & backend, const std::vector<ParameterGroup> & groups, const AdamWConfig & config = {},
              const OptimizerLimits & limits = {});

    // A trainable tensor, F32 on the device, valid as long as the optimizer. Names are unique over all groups.
    Node               parameter(const std::string & name) const;
    std::vector<float> values(const std::string & name) const;
    void               set_values(const std::string & name, const std::vector<float> & values);
    std::vector<float> gradient(const std::string & name) const; // as the last computed graph left it
    int64_t            n_parameters() const;
    int                n_tensors() const { return int(slots_.size()); }

    // Marks every parameter as requiring a gradient.
    void watch(Tape & tape) const;
    // After backward(): makes the graph copy the gradient of every parameter into the optimizer, 0 where there is none.
    void collect(Graph & graph, const Tape & tape) const;

    // One update. lrs: one learning rate per group. clip: maximum global norm, 0: off. gradient_scale: the loss scale;
    // norm and update are unscaled.
    UpdateResult step(const std::vector<double> & lrs, double clip, double gradient_scale = 1.0);

    // State for checkpoints: flat buffers per group.
    enum class BufferKind { weights, gradients, first_moments, second_moments };
    int                 n_groups() const { return int(groups_.size()); }
    const std::string & group_name(int group) const { return groups_[size_t(group)].name; }
    int64_t             n_flat(int group) const; // number of values in a buffer
    std::vector<float>  read(int group, BufferKind part) const;
    void write(int group, BufferKind part, const std::vector<float> & values); // Error(format) when the size differs
    // Calls `modify` on the values of a buffer, in place if the buffer is in host memory.
    void    modify(int group, BufferKind part, const std::function<void(float * values, size_t n)> & modify);
    int64_t step_count() const { return step_count_; }
    void    set_step_count(int64_t n) { step_count_ = n; }

    // Resets moments and step count to 0.
    void reset_moments();

    size_t n_bytes() const; // on the device

  private:
    // A part of a group with buffers of its own.
    struct Chunk {
        int64_t n_rows;                   // of the flat buffers
        Node    weights, gradients, m, v; // [kRow, n_rows]
    };
    struct Group {
        std::string        name;
        double             weight_decay;
        std::vector<Chunk> chunks;
        Node               settings; // the seven parameters of ggml_opt_step_adamw
        Node               squares;  // [1], sum of squares of the gradients
    };
    struct Slot {
        Node weight, gradient;
    };

    const Slot &      slot(const std::string & name) const;
    std::vector<Node> flat(int group, BufferKind part) const;
    Node              allocate(const std::vector<int64_t> & ne, const std::string & name);
    void              add_chunk(Group & group, const std::vector<ParameterGroup::Parameter> & parameters);
    Node              sum_of_squares(const Group & group);
    Graph &           update_graph(bool scaled);

    const Backend &                         backend_;
    AdamWConfig                             config_;
    OptimizerLimits                         limits_;
    int64_t                                 step_count_ = 0;
    ggml_context_ptr                        ctx_;
    std::vector<ggml_backend_buffer_ptr>    buffers_;
    std::vector<Group>                      groups_;
    std::vector<Slot>                       slots_; // in the order given
    std::unordered_map<std::string, size_t> by_name_;
    Node                                    factor_ = nullptr; // [kRow], the factor of the gradients, repeated
    Graph                                   norm_graph_;
    std::unique_ptr<Graph>                  update_, scaled_update_; // made when first needed
};

} // namespace penelope
