// A device of ggml that stands before another one: of its kind, with its limits and its answers to what builders of
// graphs ask, but nothing is allocated beyond what the host touches and nothing is computed. A graph that is handed to
// it for computing is held against the device behind it node by node. So a program that runs on it puts every question
// a run on the real device would.
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
    std::map<std::string, int> refused; // what, and how many nodes

    bool is_lost = false; // whatever is asked of the device throws, as Vulkan does when one is gone
};

// Adds the shadow of a device to ggml's list, for good; list_devices() then has it as the returned name. A CPU that
// claims to be none (is_cpu) gets a shadow that is a GPU. Answers go to where `answers` points at that moment.
std::string add_shadow(const DeviceInfo & asked, OpSupport *& answers);

} // namespace penelope::audit
