#include "graph/device.h"

#include "base/format.h"
#include "base/log.h"
#include "graph/threads.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <sched.h>

#include <fstream>

namespace penelope {

namespace {

// The number in a one-line sysfs file; -1 when it cannot be read.
int read_number(const std::string & path) {
    std::ifstream file(path);
    int           value = -1;
    return file >> value ? value : -1;
}

} // namespace

std::vector<DeviceInfo> list_devices() {
    log_route_ggml(); // backends log while they load
    std::vector<DeviceInfo> devices;
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        ggml_backend_dev_t dev  = ggml_backend_dev_get(i);
        const auto         type = ggml_backend_dev_type(dev);
        if (type == GGML_BACKEND_DEVICE_TYPE_ACCEL) {
            continue; // an accelerator library (BLAS): no memory of its own
        }
        DeviceInfo info{};
        info.name        = ggml_backend_dev_name(dev);
        info.description = ggml_backend_dev_description(dev);
        info.is_cpu      = type == GGML_BACKEND_DEVICE_TYPE_CPU;
        info.dev         = dev;
        ggml_backend_dev_memory(dev, &info.memory_free, &info.memory_total);
        devices.push_back(info);
    }
    return devices;
}

DeviceInfo find_device(const std::string & name) {
    const std::vector<DeviceInfo> devices = list_devices();
    if (to_lower(name) == "auto") {
        const auto gpu = std::find_if(devices.begin(), devices.end(), [](const DeviceInfo & d) { return !d.is_cpu; });
        const auto cpu = std::find_if(devices.begin(), devices.end(), [](const DeviceInfo & d) { return d.is_cpu; });
        if (gpu != devices.end()) {
            return *gpu;
        }
        if (cpu != devices.end()) {
            return *cpu;
        }
        throw Error(ErrorKind::device, "device auto: this build of ggml has no backend at all");
    }
    std::string known;
    for (const DeviceInfo & device : devices) {
        if (to_lower(device.name) == to_lower(name)) {
            return device;
        }
        known += (known.empty() ? "" : ", ") + device.name;
    }
    throw Error(ErrorKind::device, "device " + name + ": not found", "known devices: " + known);
}

int default_thread_count() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return 1;
    }
    std::set<std::pair<int, int>> cores; // (package, core): hyperthreads of a core count once
    int                           n_logical = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed)) {
            continue;
        }
        n_logical++;
        const std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
        const int         core     = read_number(topology + "core_id");
        if (core >= 0) {
            cores.insert({ read_number(topology + "physical_package_id"), core });
        }
    }
    return std::max(1, cores.empty() ? n_logical : int(cores.size()));
}

std::string ggml_version_text() {
    std::string text = std::string("ggml ") + ggml_version() + "; backends:";
    for (size_t i = 0; i < ggml_backend_reg_count(); i++) {
        text += std::string(i ? ", " : " ") + ggml_backend_reg_name(ggml_backend_reg_get(i));
    }
    return text;
}

Backend::Backend(const DeviceInfo & device, int n_threads)
    : device_(device), n_threads_(n_threads > 0 ? n_threads : default_thread_count()),
      backend_(ggml_backend_dev_init(device.dev, nullptr)) {
    if (!backend_) {
        throw Error(ErrorKind::device, "device " + device.name + ": cannot be opened");
    }
    set_n_threads(*this, n_threads_);
}

Backend::Backend(const std::vector<DeviceInfo> & devices, int n_threads) : Backend(devices.front(), n_threads) {
    for (size_t i = 1; i < devices.size(); i++) {
        others_.push_back(std::make_unique<Backend>(devices[i], n_threads));
    }
}

void Backend::set_abort(ggml_abort_callback callback, void * data) {
    abort_                 = callback;
    abort_data_            = data;
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(device_.dev);
    const auto         set = reinterpret_cast<ggml_backend_set_abort_callback_t>(
        ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_abort_callback"));
    if (set) {
        set(backend_.get(), callback, data);
    }
    for (const std::unique_ptr<Backend> & other : others_) {
        other->set_abort(callback, data);
    }
}

Error device_memory_error(const std::string & what, size_t needed, const DeviceInfo & device,
                          const std::string & hint) {
    size_t free = 0, total = 0;
    ggml_backend_dev_memory(device.dev, &free, &total);
    return Error(ErrorKind::memory,
                 what + ": " + format_bytes(needed) + " cannot be allocated on " + device.name + ", " +
                     format_bytes(free) + " of " + format_bytes(total) + " are free",
                 hint);
}

ggml_backend_buffer_type_t Backend::buffer_type() const {
    return ggml_backend_get_default_buffer_type(backend_.get());
}

} // namespace penelope
