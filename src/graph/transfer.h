// What goes between the host and tensors on a device outside of a graph, at once. Nothing else calls ggml for it: some devices say by
// exceptions of their own that they are gone, and here those become Error(device).
#pragma once

#include "ggml-cpp.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penelope {

using Node = ggml_tensor *;

// Transfers since the program started.
struct HostTraffic {
    int64_t n_uploads   = 0;
    int64_t n_downloads = 0;
};
HostTraffic host_traffic();

void                       set_node(Node node, const void * data, size_t n_bytes);
template <typename T> void set_node(Node node, const std::vector<T> & values) {
    set_node(node, values.data(), values.size() * sizeof(T));
}
std::vector<float>              get_node(Node node); // contiguous F32
std::vector<std::vector<float>> get_rows(Node node); // the same, row by row

// Bytes of a tensor, from `offset` on.
void set_bytes(Node node, size_t offset, const void * data, size_t n_bytes);
void get_bytes(Node node, size_t offset, void * data, size_t n_bytes);
void clear_bytes(Node node, size_t offset, size_t n_bytes); // to zero
void clear_buffer(ggml_backend_buffer_t buffer);

// For other calls that reach the device of that name.
void translate_device_errors(const std::string & name, const std::function<void()> & calls);

} // namespace penelope
