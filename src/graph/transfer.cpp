#include "graph/transfer.h"

#include "base/error.h"

#include <algorithm>
#include <atomic>
#include <new>

namespace penelope {

namespace {

constexpr size_t kChunkBytes = size_t(4) << 20;

std::atomic<int64_t> n_uploads{ 0 }, n_downloads{ 0 };

std::string buffer_name(Node node) {
    return ggml_backend_buffer_name(node->view_src ? node->view_src->buffer : node->buffer);
}

} // namespace

HostTraffic host_traffic() {
    return { n_uploads, n_downloads };
}

void translate_device_errors(const std::string & name, const std::function<void()> & calls) {
    try {
        calls();
    } catch (const Error &) {
        throw;
    } catch (const std::bad_alloc &) { // out of host memory
        throw;
    } catch (const std::exception & error) { // Vulkan: device lost or out of memory
        throw Error(ErrorKind::device, name + ": the device failed: " + error.what(),
                    "use --device CPU, or a smaller context, batch or model");
    }
}

void set_bytes(Node node, size_t offset, const void * data, size_t n_bytes) {
    n_uploads++;
    translate_device_errors(buffer_name(node), [&] { ggml_backend_tensor_set(node, data, offset, n_bytes); });
}

void get_bytes(Node node, size_t offset, void * data, size_t n_bytes) {
    n_downloads++;
    translate_device_errors(buffer_name(node), [&] { ggml_backend_tensor_get(node, data, offset, n_bytes); });
}

// Not every backend can fill memory itself. In chunks: tensors of optimizer state are large.
void clear_bytes(Node node, size_t offset, size_t n_bytes) {
    const std::vector<uint8_t> zeros(std::min(n_bytes, kChunkBytes));
    for (size_t done = 0; done < n_bytes; done += kChunkBytes) {
        set_bytes(node, offset + done, zeros.data(), std::min(n_bytes - done, kChunkBytes));
    }
}

void clear_buffer(ggml_backend_buffer_t buffer) {
    translate_device_errors(ggml_backend_buffer_name(buffer), [&] { ggml_backend_buffer_clear(buffer, 0); });
}

void set_node(Node node, const void * data, size_t n_bytes) {
    GGML_ASSERT(n_bytes == ggml_nbytes(node));
    set_bytes(node, 0, data, n_bytes);
}

std::vector<float> get_node(Node node) {
    GGML_ASSERT(node->type == GGML_TYPE_F32 && ggml_is_contiguous(node));
    std::vector<float> values(size_t(ggml_nelements(node)));
    get_bytes(node, 0, values.data(), ggml_nbytes(node));
    return values;
}

std::vector<std::vector<float>> get_rows(Node node) {
    std::vector<float>              all = get_node(node);
    std::vector<std::vector<float>> rows;
    if (node->ne[0] == int64_t(all.size())) {
        rows.push_back(std::move(all));
        return rows;
    }
    for (auto row = all.begin(); row != all.end(); row += node->ne[0]) {
        rows.emplace_back(row, row + node->ne[0]);
    }
    return rows;
}

} // namespace penelope
