// Where graphs run. A DeviceInfo describes what the machine offers; a Backend is one stream of work on one device: every
// session owns its own, so that sessions run from several threads. Nothing falls back to another device: an operation the
// device lacks is an Error that names it.
#pragma once

#include "base/error.h"

#include "ggml-backend.h"
#include "ggml-cpp.h"

#include <memory>
#include <string>
#include <vector>

namespace penelope {

struct DeviceInfo {
    std::string        name;        // "CPU", "CUDA0", ... as ggml names it
    std::string        description; // "AMD EPYC ..."
    size_t             memory_free;
    size_t             memory_total;
    bool               is_cpu;
    ggml_backend_dev_t dev;
};

// All devices of this build, the CPU included.
std::vector<DeviceInfo> list_devices();

// name: "auto" (first GPU, else the CPU) or a name from list_devices(), case ignored. Throws Error(device) naming the choices.
DeviceInfo find_device(const std::string & name);

// Physical cores this process may run on.
int default_thread_count();

// "ggml 0.23.0; backends: CPU, ..." for --version.
std::string ggml_version_text();

class Backend {
  public:
    Backend(const DeviceInfo & device, int n_threads);
    // Of a model whose layers are spread over several devices; the first one is the backend itself.
    Backend(const std::vector<DeviceInfo> & devices, int n_threads);

    size_t          n_devices() const { return 1 + others_.size(); }
    const Backend & device_backend(size_t i) const { return i == 0 ? *this : *others_[i - 1]; }
    bool            is_cpu_only() const { return others_.empty() && device_.is_cpu; }

    ggml_backend_t             get() const { return backend_.get(); }
    ggml_backend_buffer_type_t buffer_type() const;
    const DeviceInfo &         device() const { return device_; }
    int                        n_threads() const { return n_threads_; }

    // Asked before every graph and, on the CPU, between its nodes; true ends the computation with Error(cancelled).
    void set_abort(ggml_abort_callback callback, void * data);
    bool aborted() const { return abort_ && abort_(abort_data_); }

  private:
    DeviceInfo          device_;
    int                 n_threads_;
    ggml_backend_ptr    backend_;
    ggml_abort_callback abort_      = nullptr;
    void *              abort_data_ = nullptr;

    std::vector<std::unique_ptr<Backend>> others_;
};

// What to throw when `needed` bytes for `what` cannot be had on a device: an Error(memory) with both sizes.
Error device_memory_error(const std::string & what, size_t needed, const DeviceInfo & device, const std::string & hint);

} // namespace penelope
