#include "graph/graph.h"

#include "base/error.h"
#include "base/format.h"
#include "base/memory.h"
#include "graph/rpc.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <unordered_set>
#include <utility>

namespace penelope {

namespace {

// Tensors per node: results, views and constants each take a header of their own.
constexpr int kTensorsPerNode = 2;

int count_present(const std::vector<Node> & marks, ggml_cgraph * cgraph) {
    std::unordered_set<const ggml_tensor *> nodes;
    for (int i = 0; i < ggml_graph_n_nodes(cgraph); i++) {
        nodes.insert(ggml_graph_node(cgraph, i));
    }
    return int(std::count_if(marks.begin(), marks.end(), [&](Node mark) { return nodes.count(mark) > 0; }));
}

uint64_t next_number() {
    static std::atomic<uint64_t> last{ 0 };
    return ++last;
}

} // namespace

ggml_context_ptr new_tensor_context(size_t n_tensors) {
    ggml_init_params params{};
    params.mem_size = n_tensors * ggml_tensor_overhead();
    params.no_alloc = true;
    return ggml_context_ptr(ggml_init(params));
}

Graph::Graph(int max_nodes, Tape * tape, const Backend * backend)
    : number_(next_number()), tape_(tape), backend_(backend) {
    const size_t size =
        kTensorsPerNode * max_nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(max_nodes, false);
    ggml_init_params params{};
    params.mem_size = size;
    params.no_alloc = true;
    ctx_.reset(ggml_init(params));
    cgraph_ = ggml_new_graph_custom(ctx_.get(), max_nodes, false);
}

Node Graph::input(const std::string & name, ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2) {
    Node node = ggml_new_tensor_3d(ctx(), type, ne0, ne1, ne2);
    ggml_set_name(node, name.c_str());
    ggml_set_input(node);
    inputs_.push_back(node);
    return node;
}

Node Graph::filled_input(const std::string & name, ggml_type type, int64_t ne0, int64_t ne1,
                         std::function<void(Graph &, Node)> fill) {
    const auto found = filled_inputs_.find(name);
    if (found != filled_inputs_.end()) {
        return found->second.node;
    }
    Node node            = input(name, type, ne0, ne1);
    filled_inputs_[name] = { node, std::move(fill) };
    return node;
}

Node Graph::named(Node node, const char * format, ...) const {
    char    text[GGML_MAX_NAME];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    ggml_set_name(node, text);
    return node;
}

void Graph::expand(Node node) {
    ggml_build_forward_expand(cgraph_, node);
}

void Graph::output(Node node) {
    ggml_set_output(node);
    if (node->view_src) {
        ggml_set_output(node->view_src); // its memory is what must stay
    }
    expand(node);
}

void Graph::mark_layer_application(Node node) {
    if (!rebuilding_) {
        layer_marks_.push_back(node);
    }
}

Tape * Graph::set_tape(Tape * tape) {
    return std::exchange(tape_, tape);
}

bool Graph::set_rebuilding(bool rebuilding) {
    return std::exchange(rebuilding_, rebuilding);
}

int64_t Graph::set_next_draw(int64_t draw) {
    return std::exchange(n_draws_, draw);
}

void Graph::allocate(const Backend & backend) {
    if (!own_workspace_) {
        own_workspace_ = std::make_unique<Workspace>(backend);
    }
    allocate(backend, *own_workspace_);
}

// Tensors of this graph forget where they lay: ggml would take it for memory of somebody else's.
void Graph::forget_places() {
    for (ggml_context * owner : { ctx(), aligned_.ctx.get() }) {
        for (Node node = owner ? ggml_get_first_tensor(owner) : nullptr; node;
             node      = ggml_get_next_tensor(owner, node)) {
            node->data   = nullptr;
            node->buffer = nullptr;
        }
    }
}

size_t Graph::plan(const Backend & backend) {
    if (!is_planned_) {
        for (Node node : inputs_) {
            // An input no node reads would get no memory, and filling it would fail.
            expand(node);
        }
        forget_places();
        if (!backend.device().is_cpu) {
            aligned_ = with_aligned_views(cgraph_, ggml_backend_buft_get_alignment(backend.buffer_type()));
            cgraph_  = aligned_.graph ? aligned_.graph : cgraph_;
        }
        plan_                 = MemoryPlan(cgraph_, inputs_, backend.buffer_type());
        n_layer_applications_ = count_present(layer_marks_, cgraph_);
        is_planned_           = true;
    }
    return plan_.n_bytes();
}

void Graph::allocate(const Backend & backend, Workspace & workspace) {
    if (workspace.owner_ == number_) {
        return;
    }
    const size_t needed = std::max<size_t>(plan(backend), 1);
    workspace.owner_    = 0;
    if (workspace.bytes() < needed) {
        const size_t held = workspace.bytes();
        workspace.buffer_.reset();
        if (backend.device().is_cpu) {
            require_memory(needed - held, "graph buffer", "use a smaller context, batch or model");
        }
        workspace.buffer_.reset(ggml_backend_buft_alloc_buffer(workspace.type_, needed));
        if (!workspace.buffer_) {
            throw device_memory_error("graph buffer", needed, backend.device(),
                                      "use a smaller context, batch or model");
        }
        ggml_backend_buffer_set_usage(workspace.buffer_.get(), GGML_BACKEND_BUFFER_USAGE_COMPUTE);
    }
    forget_places();
    plan_.place(workspace.buffer_.get());
    if (!checked_) {
        const std::vector<Node> missing = missing_operations(backend);
        if (!missing.empty()) {
            throw Error(ErrorKind::device,
                        backend.device().name + ": cannot run " + ggml_op_desc(missing.front()) + " of node " +
                            ggml_get_name(missing.front()),
                        "use --device CPU");
        }
        checked_ = true;
    }
    if (is_rpc(backend.device())) {
        number_graph(backend.get(), cgraph_);
    }
    workspace.owner_ = number_;
}

// The plan puts inputs first and in order, so that they are one stretch of memory.
void Graph::set(Node input, const void * data, size_t n_bytes) {
    GGML_ASSERT(n_bytes == ggml_nbytes(input) && input->data);
    const char * first = static_cast<const char *>(inputs_.front()->data);
    const char * last  = static_cast<const char *>(inputs_.back()->data) + ggml_nbytes(inputs_.back());
    const auto   at    = size_t(static_cast<const char *>(input->data) - first);
    GGML_ASSERT(at + n_bytes <= size_t(last - first));
    staged_.resize(size_t(last - first));
    std::memcpy(staged_.data() + at, data, n_bytes);
    staged_inputs_[input] = at;
}

void Graph::send_inputs() {
    if (staged_inputs_.size() < inputs_.size()) { // the others hold what somebody else put there
        for (const auto & [input, at] : staged_inputs_) {
            set_node(input, staged_.data() + at, ggml_nbytes(input));
        }
        return;
    }
    if (inputs_.empty()) {
        return;
    }
    ggml_context_ptr header = new_tensor_context(1);
    Node             all    = ggml_new_tensor_1d(header.get(), GGML_TYPE_I8, int64_t(staged_.size()));
    ggml_backend_tensor_alloc(inputs_.front()->buffer, all, inputs_.front()->data);
    set_node(all, staged_);
}

std::vector<Node> Graph::missing_operations(const Backend & backend) const {
    std::vector<Node> missing;
    const bool        is_remote = is_rpc(backend.device());
    for (int i = 0; i < n_nodes(); i++) {
        Node node = ggml_graph_node(cgraph_, i);
        if (!ggml_backend_supports_op(backend.get(), node) || (is_remote && !runs_remotely(node))) {
            missing.push_back(node);
        }
    }
    return missing;
}

void Graph::compute(const Backend & backend) {
    if (backend.aborted()) {
        throw Error(ErrorKind::cancelled, "interrupted");
    }
    for (const auto & [name, filled] : filled_inputs_) {
        filled.fill(*this, filled.node);
    }
    ggml_status status = GGML_STATUS_FAILED;
    try {
        send_inputs();
        status = ggml_backend_graph_compute(backend.get(), cgraph_);
    } catch (const std::exception & lost) { // Vulkan's way to say that the device is gone or its memory is full
        throw Error(ErrorKind::device, backend.device().name + ": computing the graph failed: " + lost.what(),
                    "use --device CPU, or a smaller context, batch or model");
    }
    if (status == GGML_STATUS_ABORTED) {
        throw Error(ErrorKind::cancelled, "interrupted");
    }
    if (status != GGML_STATUS_SUCCESS) {
        throw Error(ErrorKind::device,
                    backend.device().name + ": computing the graph failed: " + ggml_status_to_string(status));
    }
}

namespace {

std::atomic<int64_t> n_uploads{ 0 }, n_downloads{ 0 };

} // namespace

HostTraffic host_traffic() {
    return { n_uploads, n_downloads };
}

void set_node(Node node, const void * data, size_t n_bytes) {
    GGML_ASSERT(n_bytes == ggml_nbytes(node));
    n_uploads++;
    ggml_backend_tensor_set(node, data, 0, n_bytes);
}

std::vector<float> get_node(Node node) {
    GGML_ASSERT(node->type == GGML_TYPE_F32 && ggml_is_contiguous(node));
    std::vector<float> values(size_t(ggml_nelements(node)));
    n_downloads++;
    ggml_backend_tensor_get(node, values.data(), 0, ggml_nbytes(node));
    return values;
}

std::vector<std::vector<float>> get_rows(Node node) {
    const std::vector<float>        all = get_node(node);
    std::vector<std::vector<float>> rows;
    for (auto row = all.begin(); row != all.end(); row += node->ne[0]) {
        rows.emplace_back(row, row + node->ne[0]);
    }
    return rows;
}

} // namespace penelope
