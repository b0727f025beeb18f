#include "graph/tensor_headers.h"

namespace penelope {

namespace {

constexpr size_t kHeadersAtATime = 4 * TensorHeaders::kMinFree;

} // namespace

ggml_context_ptr new_tensor_context(size_t n_tensors) {
    ggml_init_params params{};
    params.mem_size = n_tensors * ggml_tensor_overhead();
    params.no_alloc = true;
    return ggml_context_ptr(ggml_init(params));
}

ggml_context * TensorHeaders::ctx() {
    const auto free_bytes = [](const ggml_context * ctx) { return ggml_get_mem_size(ctx) - ggml_used_mem(ctx); };
    if (contexts_.empty() || free_bytes(contexts_.back().get()) < kMinFree * ggml_tensor_overhead()) {
        contexts_.push_back(new_tensor_context(kHeadersAtATime));
    }
    return contexts_.back().get();
}

void TensorHeaders::for_each(const std::function<void(ggml_tensor *)> & visit) const {
    for (const ggml_context_ptr & owner : contexts_) {
        for (ggml_tensor * tensor = ggml_get_first_tensor(owner.get()); tensor;
             tensor               = ggml_get_next_tensor(owner.get(), tensor)) {
            visit(tensor);
        }
    }
}

void TensorHeaders::clear_addresses() const {
    for_each([](ggml_tensor * tensor) {
        tensor->data   = nullptr;
        tensor->buffer = nullptr;
    });
}

size_t TensorHeaders::n_bytes() const {
    size_t n = 0;
    for (const ggml_context_ptr & owner : contexts_) {
        n += ggml_used_mem(owner.get());
    }
    return n;
}

} // namespace penelope
