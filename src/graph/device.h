// Devices and backends. DeviceInfo describes a device of this machine; a Backend wraps a ggml_backend on one device (or
// several, when a model is split by layers). Every session owns its Backend, so sessions may run in different threads.
// There is no CPU fallback: an operation the device does not support is an Error that names it.
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

// name: "auto" (the first GPU, else the CPU) or a name from list_devices(), case-insensitive. Throws Error(device) with
// the list of devices.
DeviceInfo find_device(const std::string & name);

// Number of physical cores this process may run on.
int default_thread_count();

// "ggml 0.23.0; backends: CPU, ..." for --version.
std::string ggml_version_text();

class Backend {
  public:
    Backend(const DeviceInfo & device, int n_threads);
    // For a model split over several devices. This Backend is the first device, others_ holds the rest.
    Backend(const std::vector<DeviceInfo> & devices, int n_threads);

    size_t          n_devices() const { return 1 + others_.size(); }
    const Backend & device_backend(size_t i) const { return i == 0 ? *this : *others_[i - 1]; }
    bool            is_cpu_only() const { return others_.empty() && device_.is_cpu; }

    ggml_backend_t             get() const { return backend_.get(); }
    ggml_backend_buffer_type_t buffer_type() const;
    const DeviceInfo &         device() const { return device_; }
    int                        n_threads() const { return n_threads_; }

    // Abort callback: called before every graph and, on the CPU, between nodes. True aborts with Error(cancelled).
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

// Error(memory) for a failed allocation of `needed` bytes on a device, with needed and free bytes.
Error device_memory_error(const std::string & what, size_t needed, const DeviceInfo & device, const std::string & hint);

} // namespace penelope
