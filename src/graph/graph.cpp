#include "graph/graph.h"

#include "base/error.h"
#include "base/format.h"
#include "base/memory.h"
#include "graph/op_support.h"
#include "graph/rpc.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <unordered_set>
#include <utility>

namespace penelope {

namespace {

int count_present(const std::vector<Node> & marks, const std::vector<Node> & among) {
    const std::unordered_set<const ggml_tensor *> nodes(among.begin(), among.end());
    return int(std::count_if(marks.begin(), marks.end(), [&](Node mark) { return nodes.count(mark) > 0; }));
}

uint64_t next_uid() {
    static std::atomic<uint64_t> last{ 0 };
    return ++last;
}

} // namespace

Graph::Graph(Tape * tape, const Backend * backend) : uid_(next_uid()), tape_(tape), backend_(backend) {}

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
    GGML_ASSERT(!is_planned_);
    order_.add(node);
    node_devices_.resize(size_t(n_nodes()), device_id_);
}

void Graph::host_callback(Node from, Node to, std::function<std::vector<float>(const std::vector<float> &)> work) {
    output(from);
    callbacks_.push_back({ from, [from, to, work = std::move(work)] { set_node(to, work(get_node(from))); } });
}

void Graph::add_abort_point(Node node) {
    if (backend_ && !backend_->device().is_cpu && !tape_) {
        expand(node);
        callbacks_.push_back({ node, nullptr });
    }
}

void Graph::output(Node node) {
    ggml_set_output(node);
    if (node->view_src) {
        ggml_set_output(node->view_src); // a view has no memory of its own
    }
    expand(node);
}

void Graph::mark_layer_application(Node node) {
    if (!recomputing_) {
        layer_marks_.push_back(node);
    }
}

Tape * Graph::set_tape(Tape * tape) {
    return std::exchange(tape_, tape);
}

bool Graph::set_recomputing(bool recomputing) {
    return std::exchange(recomputing_, recomputing);
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

// Resets all tensor addresses. ggml treats a tensor that has one as allocated elsewhere and would not plan it again.
void Graph::clear_addresses() {
    headers_.clear_addresses();
    aligned_.copies.clear_addresses();
    split_.clear_addresses();
}

size_t Graph::n_bytes() const {
    size_t n = plan_.n_bytes();
    for (const DeviceGraph & device_graph : split_.device_graphs()) {
        n += device_graph.plan.n_bytes();
    }
    return n;
}

size_t Graph::header_bytes() const {
    return headers_.n_bytes() + order_.graph_bytes() + aligned_.n_bytes() + split_.header_bytes();
}

size_t Graph::plan(const Backend & backend) {
    if (!is_planned_) {
        clear_addresses();
        n_layer_applications_ = count_present(layer_marks_, order_.nodes());
        owned_                = order_.graph();
        cgraph_               = owned_.graph;
        staged_.resize(backend.n_devices());
        if (is_staged(backend)) {
            split_ = SplitGraph(cgraph_, node_devices_, inputs_, callbacks_, backend);
            for (size_t i = 0; i < staged_.size(); i++) {
                staged_[i].inputs = split_.device_graphs()[i].inputs;
            }
        } else {
            if (!backend.device().is_cpu) {
                aligned_ = with_aligned_views(cgraph_, ggml_backend_buft_get_alignment(backend.buffer_type()));
                cgraph_  = aligned_.owned.graph ? aligned_.owned.graph : cgraph_;
            }
            plan_ = MemoryPlan(cgraph_, inputs_, backend.buffer_type());
            for (Node node : inputs_) {
                staged_[0].inputs.push_back({ node, node });
            }
        }
        is_planned_ = true;
    }
    return n_bytes();
}

size_t Workspace::bytes(size_t device_id) const {
    return buffers_[device_id] ? ggml_backend_buffer_get_size(buffers_[device_id].get()) : 0;
}

size_t Workspace::bytes() const {
    size_t n = 0;
    for (size_t i = 0; i < buffers_.size(); i++) {
        n += bytes(i);
    }
    return n;
}

ggml_backend_buffer_t Workspace::reserve(const Backend & backend, size_t device_id, size_t needed) {
    needed = std::max<size_t>(needed, 1);
    if (bytes(device_id) < needed) {
        const DeviceInfo & device = backend.device_backend(device_id).device();
        buffers_[device_id].reset(); // free first, so that the check below counts it as available
        if (device.is_cpu) {
            require_memory(needed, "graph buffer", "use a smaller context, batch or model");
        }
        buffers_[device_id].reset(
            ggml_backend_buft_alloc_buffer(backend.device_backend(device_id).buffer_type(), needed));
        if (!buffers_[device_id]) {
            throw device_memory_error("graph buffer", needed, device, "use a smaller context, batch or model");
        }
        ggml_backend_buffer_set_usage(buffers_[device_id].get(), GGML_BACKEND_BUFFER_USAGE_COMPUTE);
    }
    return buffers_[device_id].get();
}

void Graph::allocate(const Backend & backend, Workspace & workspace) {
    if (workspace.owner_ == uid_) {
        return;
    }
    plan(backend);
    workspace.owner_ = 0;
    clear_addresses();
    if (is_staged(backend)) {
        for (size_t i = 0; i < backend.n_devices(); i++) {
            const DeviceGraph & device_graph = split_.device_graphs()[i];
            device_graph.assign_addresses(workspace.reserve(backend, i, device_graph.plan.n_bytes()));
        }
    } else {
        plan_.assign_addresses(workspace.reserve(backend, 0, plan_.n_bytes()));
    }
    if (!checked_) {
        const std::vector<Node> unsupported = unsupported_nodes(backend);
        if (!unsupported.empty()) {
            throw Error(ErrorKind::device,
                        backend.device().name + ": cannot run " + ggml_op_desc(unsupported.front()) + " of node " +
                            ggml_get_name(unsupported.front()),
                        "use --device CPU");
        }
        checked_ = true;
    }
    if (!is_staged(backend) && is_rpc(backend.device())) {
        assign_graph_uid(backend.get(), cgraph_);
    }
    for (const GraphStage & stage : split_.stages()) {
        const Backend & device = backend.device_backend(stage.device_id);
        if (is_rpc(device.device())) {
            assign_graph_uid(device.get(), stage.graph);
        }
    }
    workspace.owner_ = uid_;
}

// The memory plan places all inputs first and in order, so on each device they are contiguous: one upload is enough.
void Graph::set(Node input, const void * data, size_t n_bytes) {
    GGML_ASSERT(n_bytes == ggml_nbytes(input));
    for (StagedInputs & staged : staged_) {
        const auto found = std::find_if(staged.inputs.begin(), staged.inputs.end(),
                                        [&](const DeviceGraph::Input & one) { return one.of == input; });
        if (found == staged.inputs.end()) {
            continue;
        }
        const char * first = static_cast<const char *>(staged.inputs.front().local->data);
        Node         end   = staged.inputs.back().local;
        const char * last  = static_cast<const char *>(end->data) + ggml_nbytes(end);
        const auto   at    = size_t(static_cast<const char *>(found->local->data) - first);
        GGML_ASSERT(found->local->data && at + n_bytes <= size_t(last - first));
        staged.bytes.resize(size_t(last - first));
        std::memcpy(staged.bytes.data() + at, data, n_bytes);
        staged.set[found->local] = at;
    }
}

void Graph::upload_inputs() {
    for (const StagedInputs & staged : staged_) {
        if (staged.inputs.empty()) {
            continue;
        }
        if (staged.set.size() < staged.inputs.size()) { // the others were written directly with set_node()
            for (const auto & [input, at] : staged.set) {
                set_node(input, staged.bytes.data() + at, ggml_nbytes(input));
            }
            continue;
        }
        ggml_context_ptr header = new_tensor_context(1);
        Node             all    = ggml_new_tensor_1d(header.get(), GGML_TYPE_I8, int64_t(staged.bytes.size()));
        Node             first  = staged.inputs.front().local;
        ggml_backend_tensor_alloc(first->buffer, all, first->data);
        set_node(all, staged.bytes);
    }
}

std::vector<Node> Graph::unsupported_nodes(const Backend & backend) const {
    std::vector<Node> unsupported;
    const auto        check = [&](const Backend & device, ggml_cgraph * graph) {
        for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
            Node node = ggml_graph_node(graph, i);
            if (!supports_node(node, device.device())) {
                unsupported.push_back(node);
            }
        }
    };
    if (split_.stages().empty()) {
        check(backend, cgraph_);
    }
    for (const GraphStage & stage : split_.stages()) {
        check(backend.device_backend(stage.device_id), stage.graph);
    }
    return unsupported;
}

namespace {

// Throws for anything but success.
void check_status(ggml_status status, const Backend & backend) {
    if (status == GGML_STATUS_ABORTED) {
        throw Error(ErrorKind::cancelled, "interrupted");
    }
    if (status != GGML_STATUS_SUCCESS) {
        throw Error(ErrorKind::device,
                    backend.device().name + ": computing the graph failed: " + ggml_status_to_string(status));
    }
}

void copy_across_devices(const std::vector<DeviceCopy> & device_copies) {
    for (const DeviceCopy & copy : device_copies) {
        ggml_backend_tensor_copy(copy.from, copy.to);
    }
}

} // namespace

void Graph::compute_stages(const Backend & backend) {
    copy_across_devices(split_.initial_copies());
    for (const GraphStage & stage : split_.stages()) {
        const Backend & device = backend.device_backend(stage.device_id);
        if (backend.aborted()) {
            throw Error(ErrorKind::cancelled, "interrupted");
        }
        check_status(ggml_backend_graph_compute(device.get(), stage.graph), device);
        copy_across_devices(stage.device_copies);
        for (const std::function<void()> & work : stage.callbacks) {
            if (work) {
                work();
            }
        }
    }
}

void Graph::compute(const Backend & backend) {
    if (backend.aborted()) {
        throw Error(ErrorKind::cancelled, "interrupted");
    }
    for (const auto & [name, filled] : filled_inputs_) {
        filled.fill(*this, filled.node);
    }
    translate_device_errors(backend.device().name, [&] {
        upload_inputs();
        if (is_staged(backend)) {
            compute_stages(backend);
        } else {
            check_status(ggml_backend_graph_compute(backend.get(), cgraph_), backend);
        }
    });
}

} // namespace penelope
