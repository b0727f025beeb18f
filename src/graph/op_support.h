// Op support beyond ggml_backend_supports_op: conditions that the kernels of the pinned ggml version assume but do not
// report. A graph that breaks one aborts, or computes wrong values on that device only.
#pragma once

#include "graph/device.h"

namespace penelope {

// Why the device's kernel cannot run this node; null when it can.
const char * unsupported_reason(const ggml_tensor * node, const DeviceInfo & device);

// ggml_backend_supports_op and unsupported_reason together. True for views: some devices reject them because of the
// size of the tensor they point into, although no kernel runs.
bool supports_node(const ggml_tensor * node, const DeviceInfo & device);

} // namespace penelope
