// Checks an allocated node against a device: whether it supports the operation, and whether the operands are aligned
// and inside their buffers.
#pragma once

#include "graph/device.h"

#include <string>

namespace penelope::audit {

// "" if the node is fine, else the reason with operation, types, shapes and name of the node.
std::string node_problem(const ggml_tensor * node, const DeviceInfo & device);

} // namespace penelope::audit
