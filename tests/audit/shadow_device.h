// A mock ggml device that wraps a real one for the op-support audit. It reports the type, limits and supported
// operations of the real device, but allocates only memory that the host touches and computes nothing. For every graph
// it is given, it asks the real device node by node whether it supports the operation.
#pragma once

#include "graph/device.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace penelope::audit {

struct OpSupport {
    int64_t                    n_graphs = 0, n_nodes = 0;
    std::set<std::string>      operations;
    std::map<std::string, int> refused; // reason -> number of nodes

    bool is_lost = false; // simulates a lost device: every call throws, as in Vulkan
};

// Registers a shadow of the device with ggml permanently; list_devices() then shows it under the returned name. A CPU
// with is_cpu == false gets a shadow of type GPU. Results are written to the object `answers` points to at that time.
std::string add_shadow(const DeviceInfo & asked, OpSupport *& answers);

} // namespace penelope::audit
