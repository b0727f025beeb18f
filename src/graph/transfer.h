// Copies between the host and tensors on a device, outside of a graph. All such copies go through here: some backends
// throw exceptions of their own when a device is lost (Vulkan), and here these become Error(device).
#pragma once

#include "ggml-cpp.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penelope {

using Node = ggml_tensor *;

// Number of transfers since the process started.
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
std::vector<std::vector<float>> get_rows(Node node); // the same as one vector per row

// n_bytes of a tensor's data, starting at `offset`.
void set_bytes(Node node, size_t offset, const void * data, size_t n_bytes);
void get_bytes(Node node, size_t offset, void * data, size_t n_bytes);
void clear_bytes(Node node, size_t offset, size_t n_bytes); // to zero
void clear_buffer(ggml_backend_buffer_t buffer);

// Runs `calls` and turns any foreign exception into Error(device) with this device name.
void translate_device_errors(const std::string & name, const std::function<void()> & calls);

} // namespace penelope
