// AdamW over groups of parameters, on the device. Every group is one flat F32 buffer of weights, one of gradients and two of
// moments; the parameters that builders use are tensors inside the flat weights. So a group is stepped by one operation, its
// norm is one, and a checkpoint is three buffers and a count. A group larger than the device lets a buffer be is cut into
// several, between two parameters.
//
// A step: the graph that collect() was called on is computed, then step() reads the global norm and, when it is finite, clips
// and updates. When it is not, nothing has changed.
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
    double                 weight_decay = 0.0; // decoupled: a step takes rate * decay * weight away
    std::vector<Parameter> parameters;
};

struct AdamWConfig {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps   = 1e-8;
};

struct UpdateResult {
    double grad_norm; // of all gradients together, before clipping
    bool   applied;   // false: the norm is not finite and weights, moments and count are untouched
};

// How much goes into one buffer and into one operation.
struct OptimizerLimits {
    size_t buffer = 0; // bytes; 0: what the device allows
    // Rows of 1024 numbers: CUDA takes 65535 products at once, and every Vulkan device 128 MiB of a buffer.
    int64_t rows = 32768;
};

class Optimizer {
  public:
    // All weights, gradients and moments start as zero. Throws Error(memory) with both sizes.
    Optimizer(const Backend & backend, const std::vector<ParameterGroup> & groups, const AdamWConfig & config = {},
              const OptimizerLimits & limits = {});

    // A trainable tensor, F32 on the device, valid as long as the optimizer. Names are unique over all groups.
    Node               parameter(const std::string & name) const;
    std::vector<float> values(const std::string & name) const;
    void               set_values(const std::string & name, const std::vector<float> & values);
    std::vector<float> gradient(const std::string & name) const; // as the last computed graph left it
    int64_t            n_parameters() const;
    int                n_tensors() const { return int(slots_.size()); }

    // Watches every parameter.
    void watch(Tape & tape) const;
    // After backward(): lets the graph leave the gradient of every parameter here, zero where none arrived.
    void collect(Graph & graph, const Tape & tape) const;

    // One update. rates: one per group. clip: largest norm, 0 for none. gradient_scale: what the loss was multiplied with; the
    // norm and the update are those of the loss itself.
    UpdateResult step(const std::vector<double> & lrs, double clip, double gradient_scale = 1.0);

    // Everything a run needs to go on as if it had not stopped, one flat buffer per group in the order given.
    enum class BufferKind { weights, gradients, first_moments, second_moments };
    int                 n_groups() const { return int(groups_.size()); }
    const std::string & group_name(int group) const { return groups_[size_t(group)].name; }
    int64_t             n_flat(int group) const; // numbers in a buffer
    std::vector<float>  read(int group, BufferKind part) const;
    void write(int group, BufferKind part, const std::vector<float> & values); // Error(format) when the size differs
    // Lets `modify` work on the numbers of a buffer, in place where the device's memory is the host's.
    void    modify(int group, BufferKind part, const std::function<void(float * values, size_t n)> & modify);
    int64_t step_count() const { return step_count_; }
    void    set_step_count(int64_t n) { step_count_ = n; }

    // Starts averaging anew: moments and count become zero.
    void reset_moments();

    size_t n_bytes() const; // on the device

  private:
    // A stretch of a group that lies in buffers of its own.
    struct Chunk {
        int64_t n_rows;                   // of the flat buffers
        Node    weights, gradients, m, v; // [kRow, n_rows]
    };
    struct Group {
        std::string        name;
        double             weight_decay;
        std::vector<Chunk> chunks;
        Node               settings; // the seven numbers of the update
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
    Node                   factor_ = nullptr; // [kRow], all the same: what gradients are multiplied with
    Graph                  norm_graph_;
    std::unique_ptr<Graph> update_, scaled_update_; // made when first needed
};

} // namespace penelope
