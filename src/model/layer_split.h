// Which device holds which layers of a backbone. This is the one place that decides it: weights, sequence states and graphs
// follow.
#pragma once

#include "graph/device.h"

#include <cstddef>
#include <string>
#include <vector>

namespace penelope {

struct LayerSplit {
    std::vector<DeviceInfo> devices; // in the order of their layers, none without one
    std::vector<int>        layers;  // the device of each layer, by its number; empty: there is one device

    static LayerSplit none(const DeviceInfo & device) { return { { device }, {} }; }

    bool is_split() const { return devices.size() > 1; }
    bool is_all_cpu() const;
    int  device_of(int il) const { return layers.empty() ? 0 : layers[size_t(il)]; }
    // The embedding lies with the first layer, final norm and head with the last.
    int last() const { return layers.empty() ? 0 : layers.back(); }
    // "CPU", or "CPU+RPC0".
    std::string name() const;
};

// Bytes of weights.
struct LayerSizes {
    std::vector<size_t> layers;
    size_t              embedding = 0, head = 0;
};

// text: "NAME=N,NAME=N,..." gives each device so many layers, in this order; "NAME,NAME,..." shares them out in proportion to
// the free memory of these devices; "memory" does so over all devices but the CPU, which gets what they have no room for.
// Throws Error(usage) for anything else, for counts that are not those of the model and Error(memory) when it does not fit.
LayerSplit split_layers(const std::string & text, const std::vector<DeviceInfo> & known, const LayerSizes & sizes);

// "layers 0-9 and the embedding on CPU, 10.2 MiB", a line for each device.
std::vector<std::string> describe(const LayerSplit & split, const LayerSizes & sizes);

} // namespace penelope
