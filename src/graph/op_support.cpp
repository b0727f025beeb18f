#include "graph/op_support.h"

#include "graph/aligned_views.h"
#include "graph/rpc.h"

#include <algorithm>
#include <cstring>

namespace penelope {

namespace {

bool are_contiguous(const ggml_tensor * node, int n_sources) {
    return std::all_of(node->src, node->src + n_sources,
                       [](const ggml_tensor * source) { return !source || ggml_is_contiguous(source); });
}

bool is_one_of(int64_t number, std::initializer_list<int64_t> known) {
    return std::find(known.begin(), known.end(), number) != known.end();
}

// ggml-cuda: the kernels of these operations assume contiguous operands. Number of operands that must be.
int n_contiguous_operands(ggml_op op) {
    switch (op) {
        case GGML_OP_UNARY:
        case GGML_OP_SCALE:
        case GGML_OP_SQR:
        case GGML_OP_SQRT:
        case GGML_OP_LOG:
        case GGML_OP_SUM:
        case GGML_OP_SUM_ROWS:
        case GGML_OP_MEAN:
        case GGML_OP_ARGMAX:
        case GGML_OP_FILL:
        case GGML_OP_DIAG_MASK_INF:
        case GGML_OP_SOFT_MAX: return 1; // the mask may have strides
        case GGML_OP_SOFT_MAX_BACK:
        case GGML_OP_RMS_NORM_BACK:
        case GGML_OP_SILU_BACK:
        case GGML_OP_GET_ROWS_BACK:
        case GGML_OP_ACC: return 2;
        case GGML_OP_OPT_STEP_ADAMW: return 5;
        default: return 0;
    }
}

const char * cuda_unsupported_reason(const ggml_tensor * node) {
    if (!are_contiguous(node, n_contiguous_operands(node->op))) {
        return "an operand has strides";
    }
    switch (node->op) {
        case GGML_OP_GLU:
            return ggml_is_contiguous_1(node->src[0]) && (!node->src[1] || ggml_is_contiguous_1(node->src[1]))
                       ? nullptr
                       : "an operand has strides inside its rows";
        case GGML_OP_GET_ROWS:
            return node->src[1]->ne[3] == 1 && node->src[0]->nb[0] == ggml_type_size(node->src[0]->type)
                       ? nullptr
                       : "rows of the table have strides";
        case GGML_OP_SSM_CONV:
            if (!is_one_of(node->src[1]->ne[0], { 3, 4, 5, 9, 15 })) {
                return "there is no kernel for a convolution over so many rows";
            }
            return node->src[0]->nb[1] == size_t(node->src[0]->ne[0]) * sizeof(float) ? nullptr
                                                                                      : "its rows have strides";
        case GGML_OP_GATED_DELTA_NET: {
            if (!is_one_of(node->src[2]->ne[0], { 16, 32, 64, 128 })) {
                return "there is no kernel for delta heads of this width";
            }
            const bool has_rows = std::all_of(node->src, node->src + 3, ggml_is_contiguous_rows);
            const bool is_flat  = std::all_of(node->src + 3, node->src + 6, ggml_is_contiguous);
            return has_rows && is_flat && ggml_are_same_stride(node->src[0], node->src[1])
                       ? nullptr
                       : "queries and keys have different strides, or what goes with them has any";
        }
        default: return nullptr;
    }
}

} // namespace

const char * unsupported_reason(const ggml_tensor * node, const DeviceInfo & device) {
    const bool is_cuda = std::strcmp(ggml_backend_reg_name(ggml_backend_dev_backend_reg(device.dev)), "CUDA") == 0;
    return is_cuda ? cuda_unsupported_reason(node) : nullptr;
}

bool supports_node(const ggml_tensor * node, const DeviceInfo & device) {
    return is_empty_op(node) || (ggml_backend_dev_supports_op(device.dev, node) &&
                                 (!is_rpc(device) || rpc_supports(node)) && !unsupported_reason(node, device));
}

} // namespace penelope
