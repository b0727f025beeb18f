#include "train/optimizer.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/shape.h"

#include <algorithm>
#include <cmath>

namespace penelope {

namespace {

// The update runs row by row on several threads, so a flat buffer is cut into rows of this many numbers.
constexpr int64_t kRow = 1024;
// Parameters start where every device lets a tensor start: 256 bytes.
constexpr int64_t kAlign = 64;

int64_t round_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

int64_t flat_size(const ParameterGroup & group) {
    int64_t n = 0;
    for (const ParameterGroup::Parameter & parameter : group.parameters) {
        n = round_up(n + n_elements(parameter.ne), kAlign);
    }
    return round_up(n, kRow);
}

Node place(ggml_context * ctx, ggml_backend_buffer_t buffer, char * address, const std::vector<int64_t> & ne,
           const std::string & name) {
    Node node = ggml_new_tensor(ctx, GGML_TYPE_F32, int(ne.size()), ne.data());
    ggml_set_name(node, name.c_str());
    ggml_backend_tensor_alloc(buffer, node, address);
    return node;
}

} // namespace

Optimizer::Optimizer(const Backend & backend, const std::vector<ParameterGroup> & groups, const AdamWConfig & config)
    : backend_(backend), config_(config), norm_graph_(8 * int(groups.size()) + 8) {
    size_t n_tensors = 0, n_floats = 0;
    for (const ParameterGroup & group : groups) {
        n_tensors += 5 + 2 * group.parameters.size();
        n_floats += size_t(4 * flat_size(group) + kAlign);
    }
    const size_t n_buffer = n_floats * sizeof(float);
    if (backend.device().is_cpu) {
        require_memory(n_buffer, "weights, gradients and moments", "train fewer parameters");
    }
    ctx_ = new_tensor_context(n_tensors);
    buffer_.reset(ggml_backend_buft_alloc_buffer(backend.buffer_type(), n_buffer));
    if (!buffer_) {
        throw Error(ErrorKind::memory,
                    "weights, gradients and moments: cannot be allocated on " + backend.device().name,
                    "train fewer parameters");
    }
    ggml_backend_buffer_clear(buffer_.get(), 0);

    char *     address = static_cast<char *>(ggml_backend_buffer_get_base(buffer_.get()));
    const auto next    = [&](const std::vector<int64_t> & ne, int64_t n, const std::string & name) {
        Node node = place(ctx_.get(), buffer_.get(), address, ne, name);
        address += size_t(n) * sizeof(float);
        return node;
    };
    for (const ParameterGroup & given : groups) {
        const int64_t              n  = flat_size(given);
        const std::vector<int64_t> ne = { kRow, n / kRow };
        Group                      group{};
        group.name      = given.name;
        group.decay     = given.decay;
        group.n_rows    = n / kRow;
        group.weights   = next(ne, n, given.name + ".weights");
        group.gradients = next(ne, n, given.name + ".gradients");
        group.m         = next(ne, n, given.name + ".first_moments");
        group.v         = next(ne, n, given.name + ".second_moments");
        group.settings  = next({ 7 }, kAlign, given.name + ".settings");
        ggml_set_param(group.weights);

        int64_t offset = 0;
        for (const ParameterGroup::Parameter & parameter : given.parameters) {
            const size_t bytes = size_t(offset) * sizeof(float);
            Slot         slot{};
            slot.weight   = place(ctx_.get(), buffer_.get(), static_cast<char *>(group.weights->data) + bytes,
                                  parameter.ne, parameter.name);
            slot.gradient = place(ctx_.get(), buffer_.get(), static_cast<char *>(group.gradients->data) + bytes,
                                  parameter.ne, parameter.name);
            GGML_ASSERT(by_name_.emplace(parameter.name, slots_.size()).second);
            slots_.push_back(slot);
            offset = round_up(offset + n_elements(parameter.ne), kAlign);
        }

        // A product of every row with itself runs on all threads and needs no memory for the squares.
        ggml_context * ctx  = norm_graph_.ctx();
        Node           rows = ggml_reshape_3d(ctx, group.gradients, kRow, 1, group.n_rows);
        group.squares       = ggml_sum(ctx, ggml_reshape_1d(ctx, ggml_mul_mat(ctx, rows, rows), group.n_rows));
        norm_graph_.output(group.squares);
        groups_.push_back(group);
    }
    norm_graph_.allocate(backend);
}

const Optimizer::Slot & Optimizer::slot(const std::string & name) const {
    const auto found = by_name_.find(name);
    GGML_ASSERT(found != by_name_.end());
    return slots_[found->second];
}

Node Optimizer::parameter(const std::string & name) const {
    return slot(name).weight;
}

std::vector<float> Optimizer::values(const std::string & name) const {
    return get_node(slot(name).weight);
}

void Optimizer::set_values(const std::string & name, const std::vector<float> & values) {
    set_node(slot(name).weight, values);
}

std::vector<float> Optimizer::gradient(const std::string & name) const {
    return get_node(slot(name).gradient);
}

int64_t Optimizer::n_parameters() const {
    int64_t n = 0;
    for (const Slot & slot : slots_) {
        n += ggml_nelements(slot.weight);
    }
    return n;
}

void Optimizer::watch(Tape & tape) const {
    for (const Slot & slot : slots_) {
        tape.watch(slot.weight);
    }
}

void Optimizer::collect(Graph & graph, const Tape & tape) const {
    for (const Slot & slot : slots_) {
        Node gradient = tape.gradient(slot.weight);
        graph.expand(gradient ? ggml_cpy(graph.ctx(), gradient, slot.gradient)
                              : ggml_fill_inplace(graph.ctx(), slot.gradient, 0.0f));
    }
}

StepReport Optimizer::step(const std::vector<double> & rates, double clip, double gradient_scale) {
    GGML_ASSERT(rates.size() == groups_.size());
    norm_graph_.compute(backend_);
    double squares = 0.0;
    for (const Group & group : groups_) {
        squares += get_node(group.squares)[0];
    }
    const double norm = std::sqrt(squares) / gradient_scale;
    if (!std::isfinite(norm)) {
        return { norm, false };
    }
    const double clipped =
        clip > 0.0 ? std::min(1.0, clip / (norm + 1e-6)) : 1.0; // as torch.nn.utils.clip_grad_norm_ does
    const float factor = float(clipped / gradient_scale);

    n_steps_++;
    // The operation takes its moments with these roundings, so the corrections of their start have to use them too.
    const float  beta1    = float(config_.beta1);
    const float  beta2    = float(config_.beta2);
    const double correct1 = 1.0 / (1.0 - std::pow(double(beta1), double(n_steps_)));
    const double correct2 = 1.0 / (1.0 - std::pow(double(beta2), double(n_steps_)));
    Graph        update(4 * n_groups() + 4);
    for (size_t i = 0; i < groups_.size(); i++) {
        const Group & group = groups_[i];
        set_node(group.settings, std::vector<float>{ float(rates[i]), beta1, beta2, float(config_.eps),
                                                     float(group.decay), float(correct1), float(correct2) });
        Node gradients = factor == 1.0f ? group.gradients : ggml_scale_inplace(update.ctx(), group.gradients, factor);
        update.expand(ggml_opt_step_adamw(update.ctx(), group.weights, gradients, group.m, group.v, group.settings));
    }
    update.allocate(backend_);
    update.compute(backend_);
    return { norm, true };
}

Node Optimizer::flat(int group, Part part) const {
    const Group & g = groups_[size_t(group)];
    return part == Part::weights         ? g.weights
           : part == Part::gradients     ? g.gradients
           : part == Part::first_moments ? g.m
                                         : g.v;
}

std::vector<float> Optimizer::read(int group, Part part) const {
    return get_node(flat(group, part));
}

void Optimizer::write(int group, Part part, const std::vector<float> & values) {
    Node node = flat(group, part);
    if (int64_t(values.size()) != ggml_nelements(node)) {
        throw Error(ErrorKind::format, "parameters " + group_name(group) + ": checkpoint holds " +
                                           std::to_string(values.size()) + " numbers, expected " +
                                           std::to_string(ggml_nelements(node)));
    }
    set_node(node, values);
}

void Optimizer::change(int group, Part part, const std::function<void(float * values, size_t n)> & change) {
    Node node = flat(group, part);
    if (ggml_backend_buffer_is_host(buffer_.get())) {
        change(static_cast<float *>(node->data), size_t(ggml_nelements(node)));
        return;
    }
    std::vector<float> values = get_node(node);
    change(values.data(), values.size());
    set_node(node, values);
}

void Optimizer::reset_moments() {
    for (const Group & group : groups_) {
        ggml_backend_tensor_memset(group.m, 0, 0, ggml_nbytes(group.m));
        ggml_backend_tensor_memset(group.v, 0, 0, ggml_nbytes(group.v));
    }
    n_steps_ = 0;
}

size_t Optimizer::n_bytes() const {
    return ggml_backend_buffer_get_size(buffer_.get()) + norm_graph_.n_bytes();
}

} // namespace penelope
