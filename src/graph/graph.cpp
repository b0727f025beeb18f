#include "graph/graph.h"

#include "base/error.h"
#include "base/format.h"
#include "base/memory.h"
#include "graph/kernel_needs.h"
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

uint64_t next_number() {
    static std::atomic<uint64_t> last{ 0 };
    return ++last;
}

} // namespace

Graph::Graph(Tape * tape, const Backend * backend) : number_(next_number()), tape_(tape), backend_(backend) {}

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
    node_parts_.resize(size_t(n_nodes()), part_);
}

void Graph::pause(Node from, Node to, std::function<std::vector<float>(const std::vector<float> &)> work) {
    output(from);
    pauses_.push_back({ from, [from, to, work = std::move(work)] { set_node(to, work(get_node(from))); } });
}

void Graph::may_stop_after(Node node) {
    if (backend_ && !backend_->device().is_cpu && !tape_) {
        expand(node);
        pauses_.push_back({ node, nullptr });
    }
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
    headers_.forget_places();
    aligned_.copies.forget_places();
    cut_.forget_places();
}

size_t Graph::n_bytes() const {
    size_t n = plan_.n_bytes();
    for (const GraphPart & part : cut_.parts()) {
        n += part.plan.n_bytes();
    }
    return n;
}

size_t Graph::header_bytes() const {
    return headers_.n_bytes() + order_.graph_bytes() + aligned_.n_bytes() + cut_.header_bytes();
}

size_t Graph::plan(const Backend & backend) {
    if (!is_planned_) {
        forget_places();
        n_layer_applications_ = count_present(layer_marks_, order_.nodes());
        counted_              = order_.graph();
        cgraph_               = counted_.graph;
        staged_.resize(backend.n_parts());
        if (is_staged(backend)) {
            cut_ = CutGraph(cgraph_, node_parts_, inputs_, pauses_, backend);
            for (size_t i = 0; i < staged_.size(); i++) {
                staged_[i].inputs = cut_.parts()[i].inputs;
            }
        } else {
            if (!backend.device().is_cpu) {
                aligned_ = with_aligned_views(cgraph_, ggml_backend_buft_get_alignment(backend.buffer_type()));
                cgraph_  = aligned_.counted.graph ? aligned_.counted.graph : cgraph_;
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

size_t Workspace::bytes(size_t part) const {
    return buffers_[part] ? ggml_backend_buffer_get_size(buffers_[part].get()) : 0;
}

size_t Workspace::bytes() const {
    size_t n = 0;
    for (size_t i = 0; i < buffers_.size(); i++) {
        n += bytes(i);
    }
    return n;
}

ggml_backend_buffer_t Workspace::reserve(const Backend & backend, size_t part, size_t needed) {
    needed = std::max<size_t>(needed, 1);
    if (bytes(part) < needed) {
        const DeviceInfo & device = backend.part(part).device();
        buffers_[part].reset(); // what it held counts as available below
        if (device.is_cpu) {
            require_memory(needed, "graph buffer", "use a smaller context, batch or model");
        }
        buffers_[part].reset(ggml_backend_buft_alloc_buffer(backend.part(part).buffer_type(), needed));
        if (!buffers_[part]) {
            throw device_memory_error("graph buffer", needed, device, "use a smaller context, batch or model");
        }
        ggml_backend_buffer_set_usage(buffers_[part].get(), GGML_BACKEND_BUFFER_USAGE_COMPUTE);
    }
    return buffers_[part].get();
}

void Graph::allocate(const Backend & backend, Workspace & workspace) {
    if (workspace.owner_ == number_) {
        return;
    }
    plan(backend);
    workspace.owner_ = 0;
    forget_places();
    if (is_staged(backend)) {
        for (size_t i = 0; i < backend.n_parts(); i++) {
            const GraphPart & part = cut_.parts()[i];
            part.place(workspace.reserve(backend, i, part.plan.n_bytes()));
        }
    } else {
        plan_.place(workspace.reserve(backend, 0, plan_.n_bytes()));
    }
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
    if (!is_staged(backend) && is_rpc(backend.device())) {
        number_graph(backend.get(), cgraph_);
    }
    for (const GraphStage & stage : cut_.stages()) {
        const Backend & device = backend.part(stage.part);
        if (is_rpc(device.device())) {
            number_graph(device.get(), stage.graph);
        }
    }
    workspace.owner_ = number_;
}

// The plan puts inputs first and in order, so that they are one stretch of memory on each device.
void Graph::set(Node input, const void * data, size_t n_bytes) {
    GGML_ASSERT(n_bytes == ggml_nbytes(input));
    for (StagedInputs & staged : staged_) {
        const auto found = std::find_if(staged.inputs.begin(), staged.inputs.end(),
                                        [&](const GraphPart::Input & one) { return one.of == input; });
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

void Graph::send_inputs() {
    for (const StagedInputs & staged : staged_) {
        if (staged.inputs.empty()) {
            continue;
        }
        if (staged.set.size() < staged.inputs.size()) { // the others hold what somebody else put there
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

std::vector<Node> Graph::missing_operations(const Backend & backend) const {
    std::vector<Node> missing;
    const auto        look = [&](const Backend & device, ggml_cgraph * graph) {
        for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
            Node node = ggml_graph_node(graph, i);
            if (!runs_node(node, device.device())) {
                missing.push_back(node);
            }
        }
    };
    if (cut_.stages().empty()) {
        look(backend, cgraph_);
    }
    for (const GraphStage & stage : cut_.stages()) {
        look(backend.part(stage.part), stage.graph);
    }
    return missing;
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

void cross(const std::vector<Crossing> & crossings) {
    for (const Crossing & crossing : crossings) {
        ggml_backend_tensor_copy(crossing.from, crossing.to);
    }
}

} // namespace

void Graph::compute_stages(const Backend & backend) {
    cross(cut_.first_crossings());
    for (const GraphStage & stage : cut_.stages()) {
        const Backend & device = backend.part(stage.part);
        if (backend.aborted()) {
            throw Error(ErrorKind::cancelled, "interrupted");
        }
        check_status(ggml_backend_graph_compute(device.get(), stage.graph), device);
        cross(stage.crossings);
        for (const std::function<void()> & work : stage.pauses) {
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
    on_device(backend.device().name, [&] {
        send_inputs();
        if (is_staged(backend)) {
            compute_stages(backend);
        } else {
            check_status(ggml_backend_graph_compute(backend.get(), cgraph_), backend);
        }
    });
}

} // namespace penelope
