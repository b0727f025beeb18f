#include "train/optimizer.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/shape.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penelope {

namespace {

// Row length of the flat buffers: ggml distributes the update over threads by rows.
constexpr int64_t kRow = 1024;
// Alignment of parameters in a buffer: 256 bytes satisfies every device.
constexpr int64_t kAlign = 64;

int64_t flat_size(const std::vector<ParameterGroup::Parameter> & parameters) {
    int64_t n = 0;
    for (const ParameterGroup::Parameter & parameter : parameters) {
        n = GGML_PAD(n + n_elements(parameter.ne), kAlign);
    }
    return GGML_PAD(n, kRow);
}

// Splits the parameters of a group into chunks of at most `most` values.
std::vector<std::vector<ParameterGroup::Parameter>> cut(const ParameterGroup & group, int64_t most) {
    std::vector<std::vector<ParameterGroup::Parameter>> chunks(1);
    for (const ParameterGroup::Parameter & parameter : group.parameters) {
        chunks.back().push_back(parameter);
        if (flat_size(chunks.back()) > most && chunks.back().size() > 1) {
            chunks.back().pop_back();
            chunks.push_back({ parameter });
        }
    }
    return chunks;
}

// Calls work(first, n) for ranges of at most `most` rows.
template <typename Work> void for_each_range(int64_t n_rows, int64_t most, const Work & work) {
    for (int64_t first = 0; first < n_rows; first += most) {
        work(first, std::min(most, n_rows - first));
    }
}

// Rows [first, first + n) of a flat buffer; the buffer itself when these are all.
Node rows_of(ggml_context * ctx, Node flat, int64_t first, int64_t n) {
    return n == flat->ne[1] ? flat : ggml_view_2d(ctx, flat, kRow, n, flat->nb[1], size_t(first) * flat->nb[1]);
}

Node place(ggml_context * ctx, Node whole, size_t offset, const std::vector<int64_t> & ne, const std::string & name) {
    Node node = ggml_new_tensor(ctx, GGML_TYPE_F32, int(ne.size()), ne.data());
    ggml_set_name(node, name.c_str());
    ggml_backend_tensor_alloc(whole->buffer, node, static_cast<char *>(whole->data) + offset);
    return node;
}

} // namespace

Optimizer::Optimizer(const Backend & backend, const std::vector<ParameterGroup> & groups, const AdamWConfig & config,
                     const OptimizerLimits & limits)
    : backend_(backend), config_(config), limits_(limits) {
    const size_t limit = limits.buffer ? limits.buffer : ggml_backend_buft_get_max_size(backend.buffer_type());
    const auto   most =
        int64_t(std::min<size_t>(limit / sizeof(float), size_t(std::numeric_limits<int64_t>::max()) / 2)) / kRow * kRow;
    size_t n_tensors = 1, n_floats = 0;
    for (const ParameterGroup & group : groups) {
        const auto chunks = cut(group, most);
        n_tensors += 1 + 4 * chunks.size() + 2 * group.parameters.size();
        for (const auto & chunk : chunks) {
            n_floats += size_t(4 * flat_size(chunk));
        }
    }
    if (backend.device().is_cpu) {
        require_memory(n_floats * sizeof(float), "weights, gradients and moments", "train fewer parameters");
    }
    ctx_    = new_tensor_context(n_tensors);
    factor_ = allocate({ kRow }, "factor");
    for (const ParameterGroup & given : groups) {
        Group group{};
        group.name         = given.name;
        group.weight_decay = given.weight_decay;
        group.settings     = allocate({ 7 }, given.name + ".settings");
        for (const auto & parameters : cut(given, most)) {
            add_chunk(group, parameters);
        }
        group.squares = sum_of_squares(group);
        norm_graph_.output(group.squares);
        groups_.push_back(std::move(group));
    }
    norm_graph_.allocate(backend);
}

// A zero tensor in its own buffer.
Node Optimizer::allocate(const std::vector<int64_t> & ne, const std::string & name) {
    Node node = ggml_new_tensor(ctx_.get(), GGML_TYPE_F32, int(ne.size()), ne.data());
    ggml_set_name(node, name.c_str());
    const size_t size = ggml_backend_buft_get_alloc_size(backend_.buffer_type(), node);
    buffers_.emplace_back(ggml_backend_buft_alloc_buffer(backend_.buffer_type(), size));
    if (!buffers_.back()) {
        throw device_memory_error(name, size, backend_.device(), "train fewer parameters");
    }
    clear_buffer(buffers_.back().get());
    ggml_backend_tensor_alloc(buffers_.back().get(), node, ggml_backend_buffer_get_base(buffers_.back().get()));
    return node;
}

void Optimizer::add_chunk(Group & group, const std::vector<ParameterGroup::Parameter> & parameters) {
    Chunk chunk{};
    chunk.n_rows                  = flat_size(parameters) / kRow;
    const std::vector<int64_t> ne = { kRow, chunk.n_rows };
    const std::string where = group.name + (group.chunks.empty() ? "" : "." + std::to_string(group.chunks.size()));
    chunk.weights           = allocate(ne, where + ".weights");
    chunk.gradients         = allocate(ne, where + ".gradients");
    chunk.m                 = allocate(ne, where + ".first_moments");
    chunk.v                 = allocate(ne, where + ".second_moments");
    int64_t first           = 0;
    for (const ParameterGroup::Parameter & parameter : parameters) {
        const size_t offset = size_t(first) * sizeof(float);
        Slot         slot{};
        slot.weight   = place(ctx_.get(), chunk.weights, offset, parameter.ne, parameter.name);
        slot.gradient = place(ctx_.get(), chunk.gradients, offset, parameter.ne, parameter.name);
        GGML_ASSERT(by_name_.emplace(parameter.name, slots_.size()).second);
        slots_.push_back(slot);
        first = GGML_PAD(first + n_elements(parameter.ne), kAlign);
    }
    group.chunks.push_back(chunk);
}

// Multiplies every row with itself: runs on all threads and needs no buffer for the squares.
Node Optimizer::sum_of_squares(const Group & group) {
    Node sum = nullptr;
    for (const Chunk & chunk : group.chunks) {
        for_each_range(chunk.n_rows, limits_.rows, [&](int64_t first, int64_t n) {
            ggml_context * ctx   = norm_graph_.ctx();
            const size_t   bytes = kRow * sizeof(float);
            Node           rows  = ggml_view_3d(ctx, chunk.gradients, kRow, 1, n, bytes, bytes, size_t(first) * bytes);
            Node           product = ggml_mul_mat(ctx, rows, rows);
            ggml_mul_mat_set_prec(product, GGML_PREC_F32);
            Node part = ggml_sum(ctx, ggml_reshape_1d(ctx, product, n));
            sum       = sum ? ggml_add(ctx, sum, part) : part;
            norm_graph_.expand(sum);
        });
    }
    return sum;
}

// One AdamW operation per range of rows. scaled: multiply the gradients by factor_ first.
Graph & Optimizer::update_graph(bool scaled) {
    std::unique_ptr<Graph> & graph = scaled ? scaled_update_ : update_;
    if (!graph) {
        graph = std::make_unique<Graph>();
        for (const Group & group : groups_) {
            for (const Chunk & chunk : group.chunks) {
                for_each_range(chunk.n_rows, limits_.rows, [&](int64_t first, int64_t n) {
                    ggml_context * ctx       = graph->ctx();
                    const auto     rows      = [&](Node flat) { return rows_of(ctx, flat, first, n); };
                    Node           weights   = rows(chunk.weights);
                    Node           gradients = rows(chunk.gradients);
                    gradients                = scaled ? ggml_mul_inplace(ctx, gradients, factor_) : gradients;
                    weights->flags |= GGML_TENSOR_FLAG_PARAM; // ggml_set_param() takes no views
                    graph->expand(
                        ggml_opt_step_adamw(ctx, weights, gradients, rows(chunk.m), rows(chunk.v), group.settings));
                });
            }
        }
    }
    graph->allocate(backend_);
    return *graph;
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

UpdateResult Optimizer::step(const std::vector<double> & lrs, double clip, double gradient_scale) {
    GGML_ASSERT(lrs.size() == groups_.size());
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

    step_count_++;
    // ggml rounds beta1 and beta2 to float, so the bias corrections must use the rounded values.
    const float  beta1    = float(config_.beta1);
    const float  beta2    = float(config_.beta2);
    const double correct1 = 1.0 / (1.0 - std::pow(double(beta1), double(step_count_)));
    const double correct2 = 1.0 / (1.0 - std::pow(double(beta2), double(step_count_)));
    for (size_t i = 0; i < groups_.size(); i++) {
        const Group & group = groups_[i];
        set_node(group.settings, std::vector<float>{ float(lrs[i]), beta1, beta2, float(config_.eps),
                                                     float(group.weight_decay), float(correct1), float(correct2) });
    }
    Graph & update = update_graph(factor != 1.0f);
    set_node(factor_, std::vector<float>(size_t(kRow), factor));
    update.compute(backend_);
    return { norm, true };
}

std::vector<Node> Optimizer::flat(int group, BufferKind part) const {
    std::vector<Node> nodes;
    for (const Chunk & chunk : groups_[size_t(group)].chunks) {
        nodes.push_back(part == BufferKind::weights         ? chunk.weights
                        : part == BufferKind::gradients     ? chunk.gradients
                        : part == BufferKind::first_moments ? chunk.m
                                                            : chunk.v);
    }
    return nodes;
}

int64_t Optimizer::n_flat(int group) const {
    int64_t n = 0;
    for (Node node : flat(group, BufferKind::weights)) {
        n += ggml_nelements(node);
    }
    return n;
}

std::vector<float> Optimizer::read(int group, BufferKind part) const {
    std::vector<float> values;
    for (Node node : flat(group, part)) {
        const std::vector<float> chunk = get_node(node);
        values.insert(values.end(), chunk.begin(), chunk.end());
    }
    return values;
}

void Optimizer::write(int group, BufferKind part, const std::vector<float> & values) {
    if (int64_t(values.size()) != n_flat(group)) {
        throw Error(ErrorKind::format, "parameters " + group_name(group) + ": checkpoint has " +
                                           std::to_string(values.size()) + " values, expected " +
                                           std::to_string(n_flat(group)));
    }
    const float * from = values.data();
    for (Node node : flat(group, part)) {
        set_node(node, from, ggml_nbytes(node));
        from += ggml_nelements(node);
    }
}

void Optimizer::modify(int group, BufferKind part, const std::function<void(float * values, size_t n)> & modify) {
    const std::vector<Node> nodes = flat(group, part);
    if (nodes.size() == 1 && ggml_backend_buffer_is_host(nodes.front()->buffer)) {
        modify(static_cast<float *>(nodes.front()->data), size_t(n_flat(group)));
        return;
    }
    std::vector<float> values = read(group, part);
    modify(values.data(), values.size());
    write(group, part, values);
}

void Optimizer::reset_moments() {
    for (const Group & group : groups_) {
        for (const Chunk & chunk : group.chunks) {
            clear_bytes(chunk.m, 0, ggml_nbytes(chunk.m));
            clear_bytes(chunk.v, 0, ggml_nbytes(chunk.v));
        }
    }
    step_count_ = 0;
}

size_t Optimizer::n_bytes() const {
    size_t n = norm_graph_.n_bytes();
    for (const ggml_backend_buffer_ptr & buffer : buffers_) {
        n += ggml_backend_buffer_get_size(buffer.get());
    }
    return n;
}

} // namespace penelope
