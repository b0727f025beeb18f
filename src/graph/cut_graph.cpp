#include "graph/cut_graph.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace penelope {

namespace {

ggml_tensor * owner(ggml_tensor * tensor) {
    return tensor->view_src ? tensor->view_src : tensor;
}

// A weight or a cache: it has memory before the graph has.
bool is_resident(const ggml_tensor * root) {
    return root->buffer != nullptr || root->data != nullptr;
}

size_t part_of_buffer(const ggml_tensor * root, const Backend & backend) {
    ggml_backend_dev_t dev = ggml_backend_buft_get_device(ggml_backend_buffer_get_type(root->buffer));
    for (size_t i = 0; i < backend.n_parts(); i++) {
        const DeviceInfo & device = backend.part(i).device();
        if (device.dev == dev || (!dev && device.is_cpu && ggml_backend_buffer_is_host(root->buffer))) {
            return i;
        }
    }
    return 0;
}

} // namespace

void GraphPart::place(ggml_backend_buffer_t buffer) const {
    plan.place_owners(buffer);
    for (const Crossing & stand_in : stand_ins) {
        ggml_backend_tensor_alloc(buffer, stand_in.to, stand_in.from->data);
    }
    for (ggml_tensor * view : views) {
        ggml_backend_view_init(view);
    }
    plan.place_views();
}

// The steps of cutting one graph, in order.
class Cutter {
  public:
    Cutter(CutGraph & out, const std::vector<ggml_tensor *> & inputs, const Backend & backend)
        : out_(out), backend_(backend) {
        out_.parts_.resize(backend.n_parts());
        for (ggml_tensor * input : inputs) {
            inputs_[input] = {};
        }
    }

    // Decides where each node runs and lets it read tensors of its own device.
    void assign(ggml_cgraph * graph, const std::vector<int> & wanted) {
        for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
            ggml_tensor * node = ggml_graph_node(graph, i);
            const size_t  part = home_of(node, size_t(wanted[size_t(i)]));
            for (ggml_tensor *& source : node->src) {
                if (source) {
                    source = on(part, source);
                }
            }
            if (node->view_src && inputs_.count(node->view_src)) {
                node->view_src = on(part, node->view_src);
            }
            add(node, part);
        }
    }

    // Stretches of nodes of one device, ended by pauses.
    void make_stages(const std::vector<Pause> & pauses) {
        std::unordered_map<const ggml_tensor *, std::vector<std::function<void()>>> work;
        for (const Pause & pause : pauses) {
            work[pause.after].push_back(pause.work);
        }
        bool is_paused = true;
        for (ggml_tensor * node : order_) {
            const size_t part = home_[node];
            if (is_paused || out_.stages_.back().part != part) {
                out_.stages_.push_back({ part, nullptr, {}, {} });
            }
            stage_[node]     = out_.stages_.size() - 1;
            const auto found = work.find(node);
            is_paused        = found != work.end();
            if (is_paused) {
                out_.stages_.back().pauses = found->second;
            }
        }
        for (const auto & [key, to] : arrivals_) {
            const auto made = stage_.find(key.first);
            (made == stage_.end() ? out_.first_crossings_ : out_.stages_[made->second].crossings)
                .push_back({ key.first, to });
        }
    }

    // Memory of each device, then a graph for each of its stages.
    void plan_part(size_t number) {
        GraphPart &                part = out_.parts_[number];
        std::vector<ggml_tensor *> nodes;
        std::copy_if(order_.begin(), order_.end(), std::back_inserter(nodes),
                     [&](ggml_tensor * node) { return home_[node] == number; });
        const Backend & backend = backend_.part(number);
        ggml_cgraph *   graph   = new_graph(nodes);
        if (!backend.device().is_cpu) {
            part.aligned = with_aligned_views(graph, ggml_backend_buft_get_alignment(backend.buffer_type()));
            graph        = part.aligned.counted.graph ? part.aligned.counted.graph : graph;
        }
        std::vector<ggml_tensor *> filled;
        for (const GraphPart::Input & input : part.inputs) {
            filled.push_back(input.local);
        }
        filled.insert(filled.end(), part.arrivals.begin(), part.arrivals.end());
        part.plan = MemoryPlan(graph, filled, backend.buffer_type());

        // A copy that was put in belongs to the stage of the node it stands before.
        std::map<size_t, std::vector<ggml_tensor *>> stages;
        std::vector<ggml_tensor *>                   copies;
        for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
            ggml_tensor * node = ggml_graph_node(graph, i);
            copies.push_back(node);
            if (const auto known = stage_.find(node); known != stage_.end()) {
                std::vector<ggml_tensor *> & all = stages[known->second];
                for (ggml_tensor * one : copies) {
                    stage_[one] = known->second;
                    all.push_back(one);
                }
                copies.clear();
            }
        }
        for (const auto & [stage, members] : stages) {
            stand_ins_.clear();
            for (ggml_tensor * node : members) {
                for (ggml_tensor *& source : node->src) {
                    source = source ? seen_from(stage, source, part) : nullptr;
                }
                node->view_src = node->view_src ? seen_from(stage, node->view_src, part) : nullptr;
            }
            out_.stages_[stage].graph = new_graph(members);
        }
    }

  private:
    void add(ggml_tensor * node, size_t part) {
        home_[node] = part;
        order_.push_back(node);
    }

    size_t home_of(ggml_tensor * node, size_t wanted) const {
        if (node->view_src && !inputs_.count(node->view_src)) {
            const auto found = home_.find(node->view_src);
            return found != home_.end() ? found->second : part_of_buffer(node->view_src, backend_);
        }
        std::vector<size_t> parts; // of the weights it reads
        for (ggml_tensor * source : node->src) {
            if (source && is_resident(owner(source))) {
                parts.push_back(part_of_buffer(owner(source), backend_));
            }
        }
        return parts.empty() || std::count(parts.begin(), parts.end(), wanted) ? wanted : parts.front();
    }

    // What a node of a device reads instead of `source`.
    ggml_tensor * on(size_t part, ggml_tensor * source) {
        if (const auto input = inputs_.find(source); input != inputs_.end()) {
            return local_input(part, source, input->second);
        }
        const auto   made = home_.find(source);
        const size_t home = made != home_.end()          ? made->second
                            : is_resident(owner(source)) ? part_of_buffer(owner(source), backend_)
                                                         : part;
        if (home == part) {
            return source;
        }
        if (!ggml_is_contiguous(source)) {
            ggml_tensor *& copy = contiguous_[source];
            if (!copy) {
                copy = ggml_cont(out_.headers_.ctx(), source);
                add(copy, home);
            }
            source = copy;
        }
        ggml_tensor *& arrival = arrivals_[{ source, part }];
        if (!arrival) {
            arrival = ggml_new_tensor(out_.headers_.ctx(), source->type, GGML_MAX_DIMS, source->ne);
            ggml_format_name(arrival, "%s (from %s)", ggml_get_name(source), backend_.part(home).device().name.c_str());
            std::copy_n(source->nb, GGML_MAX_DIMS, arrival->nb);
            ggml_set_input(arrival);
            ggml_set_output(source); // its memory stays until it has been sent
            out_.parts_[part].arrivals.push_back(arrival);
        }
        return arrival;
    }

    // The first device that reads an input gets the tensor itself.
    ggml_tensor * local_input(size_t part, ggml_tensor * input, std::map<size_t, ggml_tensor *> & locals) {
        ggml_tensor *& local = locals[part];
        if (!local) {
            local = input;
            if (locals.size() > 1) {
                local = ggml_dup_tensor(out_.headers_.ctx(), input);
                ggml_set_name(local, ggml_get_name(input));
                ggml_set_input(local);
            }
            out_.parts_[part].inputs.push_back({ input, local });
        }
        return local;
    }

    ggml_tensor * seen_from(size_t stage, ggml_tensor * source, GraphPart & part) {
        const auto made = stage_.find(source);
        if (made == stage_.end() || made->second == stage) {
            return source;
        }
        ggml_tensor *& known = stand_ins_[source];
        if (known) {
            return known;
        }
        // Not through ggml_view_tensor(): the result must not know what it was made from.
        ggml_tensor * one = ggml_dup_tensor(out_.headers_.ctx(), source);
        std::copy_n(source->nb, GGML_MAX_DIMS, one->nb);
        ggml_set_name(one, ggml_get_name(source));
        known = one;
        // A later stage reads it, so a kernel that does several nodes at once must write it. Its memory is planned already.
        ggml_set_output(source);
        if (source->view_src) {
            one->view_src  = seen_from(stage, owner(source), part);
            one->view_offs = source->view_offs;
            part.views.push_back(one);
        } else {
            part.stand_ins.push_back({ source, one });
        }
        return one;
    }

    // Nodes in this order; whatever they read besides must be a leaf.
    ggml_cgraph * new_graph(const std::vector<ggml_tensor *> & nodes) {
        NodeOrder order;
        for (ggml_tensor * node : nodes) {
            order.add(node);
        }
        out_.graphs_.push_back(order.graph());
        return out_.graphs_.back().graph;
    }

    CutGraph &                                                         out_;
    const Backend &                                                    backend_;
    std::unordered_map<ggml_tensor *, std::map<size_t, ggml_tensor *>> inputs_; // and their tensors on each device
    std::vector<ggml_tensor *>                                         order_;
    std::unordered_map<const ggml_tensor *, size_t>                    home_, stage_;
    std::map<std::pair<ggml_tensor *, size_t>, ggml_tensor *>          arrivals_;
    std::unordered_map<ggml_tensor *, ggml_tensor *>                   contiguous_, stand_ins_;
};

CutGraph::CutGraph(ggml_cgraph * graph, const std::vector<int> & wanted, const std::vector<ggml_tensor *> & inputs,
                   const std::vector<Pause> & pauses, const Backend & backend) {
    Cutter cutter(*this, inputs, backend);
    cutter.assign(graph, wanted);
    cutter.make_stages(pauses);
    for (size_t part = 0; part < parts_.size(); part++) {
        cutter.plan_part(part);
    }
}

size_t CutGraph::header_bytes() const {
    size_t n = headers_.n_bytes();
    for (const CountedGraph & graph : graphs_) {
        n += ggml_get_mem_size(graph.ctx.get());
    }
    for (const GraphPart & part : parts_) {
        n += part.aligned.n_bytes();
    }
    return n;
}

void CutGraph::forget_places() {
    headers_.forget_places();
    for (const GraphPart & part : parts_) {
        part.aligned.copies.forget_places();
    }
}

} // namespace penelope
