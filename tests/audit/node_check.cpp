#include "node_check.h"

#include "graph/aligned_views.h"
#include "graph/op_support.h"
#include "graph/rpc.h"

#include <cstdint>

namespace penelope::audit {

namespace {

std::string shape_text(const ggml_tensor * tensor) {
    std::string text = std::string(ggml_type_name(tensor->type)) + "[";
    for (int i = 0; i < ggml_n_dims(tensor); i++) {
        text += (i ? "," : "") + std::to_string(tensor->ne[i]);
    }
    return text + "]" + (ggml_is_contiguous(tensor) ? "" : " strided");
}

std::string node_text(const ggml_tensor * node) {
    std::string text = std::string(ggml_op_desc(node)) + " " + shape_text(node) + " from";
    for (const ggml_tensor * source : node->src) {
        text += source ? " " + shape_text(source) : "";
    }
    return text + ", node " + (*ggml_get_name(node) ? ggml_get_name(node) : "without a name");
}

bool lies_inside(const ggml_tensor * tensor) {
    const ggml_backend_buffer_t buffer = tensor->view_src ? tensor->view_src->buffer : tensor->buffer;
    if (!buffer || !tensor->data) {
        return false;
    }
    const auto first = reinterpret_cast<uintptr_t>(ggml_backend_buffer_get_base(buffer));
    const auto at    = reinterpret_cast<uintptr_t>(tensor->data);
    return at >= first && at + ggml_nbytes(tensor) <= first + ggml_backend_buffer_get_size(buffer);
}

} // namespace

std::string node_problem(const ggml_tensor * node, const DeviceInfo & device) {
    if (!supports_node(node, device)) {
        const char * need = unsupported_reason(node, device);
        return std::string(need ? need : "not run") + ": " + node_text(node);
    }
    const size_t alignment = ggml_backend_buft_get_alignment(ggml_backend_dev_buffer_type(device.dev));
    if (!lies_inside(node)) {
        return "outside its buffer: " + node_text(node);
    }
    for (const ggml_tensor * source : node->src) {
        if (source && !lies_inside(source)) {
            return "reads outside a buffer: " + node_text(node);
        }
        if (source && !device.is_cpu && !accepts_unaligned(node, source) &&
            reinterpret_cast<uintptr_t>(source->data) % alignment != 0) {
            return "reads from a place that cannot be bound: " + node_text(node);
        }
    }
    return "";
}

} // namespace penelope::audit
