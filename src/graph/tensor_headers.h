// Storage for ggml_tensor structs (metadata without data), growing on demand. A ggml_context has a fixed capacity and
// aborts when it is exceeded.
#pragma once

#include <ggml-cpp.h>

#include <functional>
#include <vector>

namespace penelope {

// A ggml_context with room for exactly n_tensors tensor structs and no data.
ggml_context_ptr new_tensor_context(size_t n_tensors);

// A list of such contexts that grows as needed.
class TensorHeaders {
  public:
    // A context with room for at least kMinFree more tensors. Code that stores the pointer may create a few dozen
    // tensors with it, since functions it calls create tensors in the same context. In a loop, call ctx() again each
    // time.
    ggml_context * ctx();
    void           for_each(const std::function<void(ggml_tensor *)> & visit) const;
    // Resets data and buffer of all tensors.
    void   clear_addresses() const;
    size_t n_bytes() const; // of the structs in use

    const std::vector<ggml_context_ptr> & contexts() const { return contexts_; }

    static constexpr size_t kMinFree = 512;

  private:
    std::vector<ggml_context_ptr> contexts_;
};

} // namespace penelope
