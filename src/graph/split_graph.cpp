#include "graph/split_graph.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace penelope {

namespace {

ggml_tensor * owner(ggml_tensor * tensor) {
    return tensor->view_src ? tensor->view_src : tensor;
}

// A weight or KV cache: allocated before the graph is planned.
bool is_resident(const ggml_tensor * root) {
    return root->buffer != nullptr || root->data != nullptr;
}

size_t device_of_buffer(const ggml_tensor * root, const Backend & backend) {
    ggml_backend_dev_t dev = ggml_backend_buft_get_device(ggml_backend_buffer_get_type(root->buffer));
    for (size_t i = 0; i < backend.n_devices(); i++) {
        const DeviceInfo & device = backend.device_backend(i).device();
        if (device.dev == dev || (!dev && device.is_cpu && ggml_backend_buffer_is_host(root->buffer))) {
            return i;
        }
    }
    return 0;
}

} // namespace

void DeviceGraph::assign_addresses(ggml_backend_buffer_t buffer) const {
    plan.assign_tensors(buffer);
    for (const DeviceCopy & proxy : proxies) {
        ggml_backend_tensor_alloc(buffer, proxy.to, proxy.from->data);
    }
    for (ggml_tensor * view : views) {
        ggml_backend_view_init(view);
    }
    plan.assign_views();
}

// The passes that split one graph, in order.
class GraphSplitter {
  public:
    GraphSplitter(SplitGraph & out, const std::vector<ggml_tensor *> & inputs, const Backend & backend)
        : out_(out), backend_(backend) {
        out_.devices_.resize(backend.n_devices());
        for (ggml_tensor * input : inputs) {
            inputs_[input] = {};
        }
    }

    // Chooses the device of each node and replaces sources on other devices by local tensors.
    void assign(ggml_cgraph * graph, const std::vector<int> & preferred_device) {
        for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
            ggml_tensor * node   = ggml_graph_node(graph, i);
            const size_t  device = device_of(node, size_t(preferred_device[size_t(i)]));
            for (ggml_tensor *& source : node->src) {
                if (source) {
                    source = on(device, source);
                }
            }
            if (node->view_src && inputs_.count(node->view_src)) {
                node->view_src = on(device, node->view_src);
            }
            add(node, device);
        }
    }

    // Groups consecutive nodes of one device into stages; a host callback ends a stage.
    void make_stages(const std::vector<HostCallback> & callbacks) {
        std::unordered_map<const ggml_tensor *, std::vector<std::function<void()>>> work;
        for (const HostCallback & callback : callbacks) {
            work[callback.after].push_back(callback.work);
        }
        bool ends_here = true;
        for (ggml_tensor * node : order_) {
            const size_t device_id = device_[node];
            if (ends_here || out_.stages_.back().device_id != device_id) {
                out_.stages_.push_back({ device_id, nullptr, {}, {} });
            }
            stage_[node]     = out_.stages_.size() - 1;
            const auto found = work.find(node);
            ends_here        = found != work.end();
            if (ends_here) {
                out_.stages_.back().callbacks = found->second;
            }
        }
        for (const auto & [key, to] : received_) {
            const auto made = stage_.find(key.first);
            (made == stage_.end() ? out_.initial_copies_ : out_.stages_[made->second].device_copies)
                .push_back({ key.first, to });
        }
    }

    // Plans the memory of one device, then creates the ggml_cgraph of each of its stages.
    void plan_device(size_t number) {
        DeviceGraph &              device = out_.devices_[number];
        std::vector<ggml_tensor *> nodes;
        std::copy_if(order_.begin(), order_.end(), std::back_inserter(nodes),
                     [&](ggml_tensor * node) { return device_[node] == number; });
        const Backend & backend = backend_.device_backend(number);
        ggml_cgraph *   graph   = new_graph(nodes);
        if (!backend.device().is_cpu) {
            device.aligned = with_aligned_views(graph, ggml_backend_buft_get_alignment(backend.buffer_type()));
            graph          = device.aligned.owned.graph ? device.aligned.owned.graph : graph;
        }
        std::vector<ggml_tensor *> filled;
        for (const DeviceGraph::Input & input : device.inputs) {
            filled.push_back(input.local);
        }
        filled.insert(filled.end(), device.received.begin(), device.received.end());
        device.plan = MemoryPlan(graph, filled, backend.buffer_type());

        // An inserted aligned copy belongs to the stage of the node that follows it.
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
            proxies_.clear();
            for (ggml_tensor * node : members) {
                for (ggml_tensor *& source : node->src) {
                    source = source ? proxy_for(stage, source, device) : nullptr;
                }
                node->view_src = node->view_src ? proxy_for(stage, node->view_src, device) : nullptr;
            }
            out_.stages_[stage].graph = new_graph(members);
        }
    }

  private:
    void add(ggml_tensor * node, size_t device) {
        device_[node] = device;
        order_.push_back(node);
    }

    size_t device_of(ggml_tensor * node, size_t preferred_device) const {
        if (node->view_src && !inputs_.count(node->view_src)) {
            const auto found = device_.find(node->view_src);
            return found != device_.end() ? found->second : device_of_buffer(node->view_src, backend_);
        }
        std::vector<size_t> devices; // devices of the weights it reads
        for (ggml_tensor * source : node->src) {
            if (source && is_resident(owner(source))) {
                devices.push_back(device_of_buffer(owner(source), backend_));
            }
        }
        return devices.empty() || std::count(devices.begin(), devices.end(), preferred_device) ? preferred_device
                                                                                               : devices.front();
    }

    // The tensor a node on `device` reads instead of `source`.
    ggml_tensor * on(size_t device, ggml_tensor * source) {
        if (const auto input = inputs_.find(source); input != inputs_.end()) {
            return local_input(device, source, input->second);
        }
        const auto   made          = device_.find(source);
        const size_t source_device = made != device_.end()        ? made->second
                                     : is_resident(owner(source)) ? device_of_buffer(owner(source), backend_)
                                                                  : device;
        if (source_device == device) {
            return source;
        }
        if (!ggml_is_contiguous(source)) {
            ggml_tensor *& copy = contiguous_[source];
            if (!copy) {
                copy = ggml_cont(out_.headers_.ctx(), source);
                add(copy, source_device);
            }
            source = copy;
        }
        ggml_tensor *& received = received_[{ source, device }];
        if (!received) {
            received = ggml_new_tensor(out_.headers_.ctx(), source->type, GGML_MAX_DIMS, source->ne);
            ggml_format_name(received, "%s (from %s)", ggml_get_name(source),
                             backend_.device_backend(source_device).device().name.c_str());
            std::copy_n(source->nb, GGML_MAX_DIMS, received->nb);
            ggml_set_input(received);
            ggml_set_output(source); // stays allocated until it has been copied
            out_.devices_[device].received.push_back(received);
        }
        return received;
    }

    // The first device that reads an input uses the tensor itself, the others a duplicate.
    ggml_tensor * local_input(size_t device, ggml_tensor * input, std::map<size_t, ggml_tensor *> & locals) {
        ggml_tensor *& local = locals[device];
        if (!local) {
            local = input;
            if (locals.size() > 1) {
                local = ggml_dup_tensor(out_.headers_.ctx(), input);
                ggml_set_name(local, ggml_get_name(input));
                ggml_set_input(local);
            }
            out_.devices_[device].inputs.push_back({ input, local });
        }
        return local;
    }

    ggml_tensor * proxy_for(size_t stage, ggml_tensor * source, DeviceGraph & device) {
        const auto made = stage_.find(source);
        if (made == stage_.end() || made->second == stage) {
            return source;
        }
        ggml_tensor *& known = proxies_[source];
        if (known) {
            return known;
        }
        // Not ggml_view_tensor(): a proxy must not have sources.
        ggml_tensor * one = ggml_dup_tensor(out_.headers_.ctx(), source);
        std::copy_n(source->nb, GGML_MAX_DIMS, one->nb);
        ggml_set_name(one, ggml_get_name(source));
        known = one;
        // A later stage reads it, so a fused kernel must write it too. Its memory is planned already.
        ggml_set_output(source);
        if (source->view_src) {
            one->view_src  = proxy_for(stage, owner(source), device);
            one->view_offs = source->view_offs;
            device.views.push_back(one);
        } else {
            device.proxies.push_back({ source, one });
        }
        return one;
    }

    // A ggml_cgraph of these nodes in this order. All other tensors they read must be leaves.
    ggml_cgraph * new_graph(const std::vector<ggml_tensor *> & nodes) {
        NodeOrder order;
        for (ggml_tensor * node : nodes) {
            order.add(node);
        }
        out_.graphs_.push_back(order.graph());
        return out_.graphs_.back().graph;
    }

    SplitGraph &    out_;
    const Backend & backend_;
    std::unordered_map<ggml_tensor *, std::map<size_t, ggml_tensor *>>
                                                              inputs_; // host input -> its tensor on each device
    std::vector<ggml_tensor *>                                order_;
    std::unordered_map<const ggml_tensor *, size_t>           device_, stage_;
    std::map<std::pair<ggml_tensor *, size_t>, ggml_tensor *> received_;
    std::unordered_map<ggml_tensor *, ggml_tensor *>          contiguous_, proxies_;
};

SplitGraph::SplitGraph(ggml_cgraph * graph, const std::vector<int> & preferred_device,
                       const std::vector<ggml_tensor *> & inputs, const std::vector<HostCallback> & callbacks,
                       const Backend & backend) {
    GraphSplitter splitter(*this, inputs, backend);
    splitter.assign(graph, preferred_device);
    splitter.make_stages(callbacks);
    for (size_t device = 0; device < devices_.size(); device++) {
        splitter.plan_device(device);
    }
}

size_t SplitGraph::header_bytes() const {
    size_t n = headers_.n_bytes();
    for (const OwnedGraph & graph : graphs_) {
        n += ggml_get_mem_size(graph.ctx.get());
    }
    for (const DeviceGraph & device : devices_) {
        n += device.aligned.n_bytes();
    }
    return n;
}

void SplitGraph::clear_addresses() {
    headers_.clear_addresses();
    for (const DeviceGraph & device : devices_) {
        device.aligned.copies.clear_addresses();
    }
}

} // namespace penelope
