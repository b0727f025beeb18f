// Headers of tensors whose memory lies elsewhere, as many as are asked for.
#pragma once

#include <ggml-cpp.h>

#include <functional>
#include <vector>

namespace penelope {

// For the headers of so many tensors and no more: ggml ends the process at the first one too many.
ggml_context_ptr new_tensor_context(size_t n_tensors);

// Grows instead.
class TensorHeaders {
  public:
    // With room for kMinFree more. Whoever keeps it in a variable puts down a few dozen tensors by it, and asks again in a loop:
    // those it calls meanwhile may take of the same room.
    ggml_context * ctx();
    void           for_each(const std::function<void(ggml_tensor *)> & visit) const;
    // Tensors lose the places they had.
    void   clear_addresses() const;
    size_t n_bytes() const; // of those handed out

    const std::vector<ggml_context_ptr> & contexts() const { return contexts_; }

    static constexpr size_t kMinFree = 512;

  private:
    std::vector<ggml_context_ptr> contexts_;
};

} // namespace penelope
