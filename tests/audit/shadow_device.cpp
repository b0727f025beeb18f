#include "shadow_device.h"

#include "node_check.h"

#include "ggml-backend-impl.h"

#include <sys/mman.h>

#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>

namespace penelope::audit {

namespace {

struct Shadow {
    DeviceInfo               asked;
    std::string              name;
    OpSupport **             answers;
    ggml_backend_reg         reg;
    ggml_backend_device      device;
    ggml_backend_buffer_type buffer_type;

    ggml_backend_buffer_type_t asked_buffer_type() const { return ggml_backend_dev_buffer_type(asked.dev); }
};

Shadow & of(ggml_backend_dev_t dev) {
    return *static_cast<Shadow *>(dev->context);
}

Shadow & of(ggml_backend_buffer_type_t type) {
    return *static_cast<Shadow *>(type->context);
}

void require_present(const Shadow & shadow) {
    if ((*shadow.answers)->is_lost) {
        throw std::runtime_error("device lost");
    }
}

// Address space that reads as zeros and takes memory only where somebody writes.
struct Space {
    void * base;
    size_t mapped; // 0: the memory is somebody else's
};

const Space & space_of(ggml_backend_buffer_t buffer) {
    return *static_cast<Space *>(buffer->context);
}

ggml_backend_buffer_i buffer_functions() {
    ggml_backend_buffer_i functions{};
    functions.free_buffer = [](ggml_backend_buffer_t buffer) {
        const std::unique_ptr<Space> space(static_cast<Space *>(buffer->context));
        if (space->mapped > 0) {
            munmap(space->base, space->mapped);
        }
    };
    functions.get_base      = [](ggml_backend_buffer_t buffer) { return space_of(buffer).base; };
    functions.memset_tensor = [](ggml_backend_buffer_t buffer, ggml_tensor *, uint8_t, size_t, size_t) {
        require_present(of(buffer->buft));
    };
    functions.set_tensor = [](ggml_backend_buffer_t buffer, ggml_tensor *, const void *, size_t, size_t) {
        require_present(of(buffer->buft));
    };
    functions.get_tensor = [](ggml_backend_buffer_t buffer, const ggml_tensor *, void * data, size_t, size_t size) {
        require_present(of(buffer->buft));
        std::memset(data, 0, size);
    };
    functions.cpy_tensor = [](ggml_backend_buffer_t, const ggml_tensor *, ggml_tensor *) { return true; };
    functions.clear      = [](ggml_backend_buffer_t buffer, uint8_t) { require_present(of(buffer->buft)); };
    return functions;
}

ggml_backend_buffer_t new_buffer(ggml_backend_buffer_type_t type, size_t size) {
    const Shadow & shadow = of(type);
    if (size > ggml_backend_buft_get_max_size(shadow.asked_buffer_type()) ||
        (!shadow.asked.is_cpu && size > shadow.asked.memory_total)) {
        return nullptr;
    }
    void * base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return base == MAP_FAILED ? nullptr
                              : ggml_backend_buffer_init(type, buffer_functions(), new Space{ base, size }, size);
}

ggml_backend_buffer_type_i buffer_type_functions() {
    ggml_backend_buffer_type_i functions{};
    functions.get_name      = [](ggml_backend_buffer_type_t type) { return of(type).name.c_str(); };
    functions.alloc_buffer  = new_buffer;
    functions.get_alignment = [](ggml_backend_buffer_type_t type) {
        return ggml_backend_buft_get_alignment(of(type).asked_buffer_type());
    };
    functions.get_max_size = [](ggml_backend_buffer_type_t type) {
        return ggml_backend_buft_get_max_size(of(type).asked_buffer_type());
    };
    functions.get_alloc_size = [](ggml_backend_buffer_type_t type, const ggml_tensor * tensor) {
        return ggml_backend_buft_get_alloc_size(of(type).asked_buffer_type(), tensor);
    };
    functions.is_host = [](ggml_backend_buffer_type_t type) {
        return of(type).asked.is_cpu && ggml_backend_buft_is_host(of(type).asked_buffer_type());
    };
    return functions;
}

ggml_status audit_graph(ggml_backend_t backend, ggml_cgraph * graph) {
    Shadow &    shadow  = of(backend->device);
    OpSupport & answers = **shadow.answers;
    require_present(shadow);
    answers.n_graphs++;
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        const ggml_tensor * node = ggml_graph_node(graph, i);
        answers.n_nodes++;
        answers.operations.insert(ggml_op_desc(node));
        const std::string problem = node_problem(node, shadow.asked);
        if (!problem.empty()) {
            answers.refused[problem]++;
        }
    }
    return GGML_STATUS_SUCCESS;
}

ggml_backend_t new_backend(ggml_backend_dev_t dev, const char *) {
    static ggml_guid guid{ 0x70, 0x65, 0x6e, 0x65, 0x6c, 0x6f, 0x70, 0x65,
                           0x2d, 0x61, 0x75, 0x64, 0x69, 0x74, 0x00, 0x01 };
    ggml_backend_i   functions{};
    functions.get_name      = [](ggml_backend_t backend) { return of(backend->device).name.c_str(); };
    functions.free          = [](ggml_backend_t backend) { delete backend; };
    functions.graph_compute = audit_graph;
    return new ggml_backend{ &guid, functions, dev, nullptr };
}

// A builder that chooses between forms asks before the node has a place. Once it has one it is there to stay: the
// answer then counts when the graph is computed, so that all refusals are seen and not just the first.
bool builder_supports_op(ggml_backend_dev_t dev, const ggml_tensor * node) {
    return node->buffer || ggml_backend_dev_supports_op(of(dev).asked.dev, node);
}

ggml_backend_device_i device_functions() {
    ggml_backend_device_i functions{};
    functions.get_name        = [](ggml_backend_dev_t dev) { return of(dev).name.c_str(); };
    functions.get_description = [](ggml_backend_dev_t dev) { return of(dev).asked.description.c_str(); };
    functions.get_memory      = [](ggml_backend_dev_t dev, size_t * free, size_t * total) {
        ggml_backend_dev_memory(of(dev).asked.dev, free, total);
    };
    functions.get_type = [](ggml_backend_dev_t dev) {
        const auto type = ggml_backend_dev_type(of(dev).asked.dev);
        return type == GGML_BACKEND_DEVICE_TYPE_CPU && !of(dev).asked.is_cpu ? GGML_BACKEND_DEVICE_TYPE_GPU : type;
    };
    functions.get_props = [](ggml_backend_dev_t dev, ggml_backend_dev_props * props) {
        ggml_backend_dev_get_props(of(dev).asked.dev, props);
        props->name = of(dev).name.c_str();
    };
    functions.init_backend         = new_backend;
    functions.get_buffer_type      = [](ggml_backend_dev_t dev) { return &of(dev).buffer_type; };
    functions.buffer_from_host_ptr = [](ggml_backend_dev_t dev, void * memory, size_t size, size_t) {
        return ggml_backend_buffer_init(&of(dev).buffer_type, buffer_functions(), new Space{ memory, 0 }, size);
    };
    functions.supports_op   = builder_supports_op;
    functions.supports_buft = [](ggml_backend_dev_t dev, ggml_backend_buffer_type_t type) {
        return type == &of(dev).buffer_type;
    };
    return functions;
}

ggml_backend_reg_i registry_functions() {
    ggml_backend_reg_i functions{};
    functions.get_name = [](ggml_backend_reg_t reg) {
        return ggml_backend_reg_name(ggml_backend_dev_backend_reg(static_cast<Shadow *>(reg->context)->asked.dev));
    };
    functions.get_device_count = [](ggml_backend_reg_t) { return size_t(1); };
    functions.get_device = [](ggml_backend_reg_t reg, size_t) { return &static_cast<Shadow *>(reg->context)->device; };
    functions.get_proc_address = [](ggml_backend_reg_t, const char *) -> void * { return nullptr; };
    return functions;
}

} // namespace

std::string add_shadow(const DeviceInfo & asked, OpSupport *& answers) {
    static auto &     shadows = *new std::deque<Shadow>; // for good: ggml's list never shrinks
    const std::string name    = "asked" + std::to_string(ggml_backend_dev_count()) + "-" + asked.name;
    Shadow &          shadow  = shadows.emplace_back(Shadow{ asked, name, &answers, {}, {}, {} });
    shadow.reg                = { GGML_BACKEND_API_VERSION, registry_functions(), &shadow };
    shadow.device             = { device_functions(), &shadow.reg, &shadow };
    shadow.buffer_type        = { buffer_type_functions(), &shadow.device, &shadow };
    ggml_backend_device_register(&shadow.device);
    return shadow.name;
}

} // namespace penelope::audit
