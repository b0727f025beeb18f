#include "graph/graph.h"

#include "base/error.h"
#include "base/format.h"
#include "base/memory.h"
#include "graph/rpc.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
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

Graph::Graph(int max_nodes, Tape * tape) : number_(next_number()), tape_(tape) {
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
    for (Node node = ggml_get_first_tensor(ctx()); node; node = ggml_get_next_tensor(ctx(), node)) {
        node->data   = nullptr;
        node->buffer = nullptr;
    }
}

size_t Graph::plan(const Backend & backend) {
    if (!is_planned_) {
        for (Node node : inputs_) {
            // An input no node reads would get no memory, and filling it would fail.
            expand(node);
        }
        forget_places();
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
            throw Error(ErrorKind::memory,
                        "graph buffer: " + format_bytes(needed) + " cannot be allocated on " + backend.device().name,
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
    const ggml_status status = ggml_backend_graph_compute(backend.get(), cgraph_);
    if (status == GGML_STATUS_ABORTED) {
        throw Error(ErrorKind::cancelled, "interrupted");
    }
    if (status != GGML_STATUS_SUCCESS) {
        throw Error(ErrorKind::device,
                    backend.device().name + ": computing the graph failed: " + ggml_status_to_string(status));
    }
}

void set_node(Node node, const void * data, size_t n_bytes) {
    GGML_ASSERT(n_bytes == ggml_nbytes(node));
    ggml_backend_tensor_set(node, data, 0, n_bytes);
}

std::vector<float> get_node(Node node) {
    GGML_ASSERT(node->type == GGML_TYPE_F32 && ggml_is_contiguous(node));
    std::vector<float> values(size_t(ggml_nelements(node)));
    ggml_backend_tensor_get(node, values.data(), 0, ggml_nbytes(node));
    return values;
}

std::vector<std::vector<float>> get_rows(Node node) {
    GGML_ASSERT(node->type == GGML_TYPE_F32 && ggml_is_contiguous(node));
    std::vector<std::vector<float>> rows(size_t(ggml_nrows(node)), std::vector<float>(size_t(node->ne[0])));
    for (size_t i = 0; i < rows.size(); i++) {
        ggml_backend_tensor_get(node, rows[i].data(), i * node->nb[1], node->nb[1]);
    }
    return rows;
}

} // namespace penelope
