// Splits the layers of a model over devices (--split). Weights, KV cache and graphs all follow this decision.
#pragma once

#include "graph/device.h"

#include <cstddef>
#include <string>
#include <vector>

namespace penelope {

struct LayerSplit {
    std::vector<DeviceInfo> devices; // in the order of their layers; each has at least one
    std::vector<int>        layers;  // index of each layer's device; empty: one device

    static LayerSplit none(const DeviceInfo & device) { return { { device }, {} }; }

    bool is_split() const { return devices.size() > 1; }
    bool is_all_cpu() const;
    int  device_of(int il) const { return layers.empty() ? 0 : layers[size_t(il)]; }
    // The device of the last layer, which also has the final norm and the head. The embedding is with the first layer.
    int last() const { return layers.empty() ? 0 : layers.back(); }
    // "CPU", or "CPU+RPC0".
    std::string name() const;
};

// Bytes of the weights.
struct LayerSizes {
    std::vector<size_t> layers;
    size_t              embedding = 0, head = 0;
};

// text: "NAME=N,NAME=N,..." assigns N layers to each device, in this order. "NAME,NAME,..." splits in proportion to the
// devices' free memory. "memory" does so over all devices but the CPU, which takes what does not fit. Throws
// Error(usage) for invalid text or a wrong number of layers, Error(memory) when a device is too small.
LayerSplit split_layers(const std::string & text, const std::vector<DeviceInfo> & known, const LayerSizes & sizes);

// "layers 0-9 and the embedding on CPU, 10.2 MiB", a line for each device.
std::vector<std::string> describe(const LayerSplit & split, const LayerSizes & sizes);

} // namespace penelope
