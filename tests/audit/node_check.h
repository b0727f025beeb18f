// What a device is asked about a node that has its place: whether it runs the operation, and whether the operands lie
// where it can bind them and inside their buffers.
#pragma once

#include "graph/device.h"

#include <string>

namespace penelope::audit {

// Empty: none. Else what is wrong, with the operation, types and shapes and the name of the node.
std::string node_problem(const ggml_tensor * node, const DeviceInfo & device);

} // namespace penelope::audit
