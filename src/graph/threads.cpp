#include "graph/threads.h"

#include "graph/packed_product.h"

#include <algorithm>

namespace penelope {

bool has_small_products(const Graph & g, size_t n_sequences) {
    int64_t work = 0, n_products = 0;
    for (Node node : g.nodes()) {
        if (node->op == GGML_OP_MUL_MAT || (node->op == GGML_OP_CUSTOM && is_packed(node->src[0]))) {
            work += 2 * node->src[0]->ne[0] * ggml_nelements(node);
            n_products++;
        }
    }
    return work < kMinParallelOps * n_products * int64_t(std::max<size_t>(n_sequences, 1));
}

void set_n_threads(const Backend & backend, int n) {
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(backend.device().dev);
    const auto         set = reinterpret_cast<ggml_backend_set_n_threads_t>(
        ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads"));
    if (set) {
        set(backend.get(), n);
    }
}

} // namespace penelope
