// What kernels take for granted although the device says that it runs the operation: read in the pinned ggml's sources, because a
// graph that breaks one of these ends the process or is computed wrongly on the device alone.
#pragma once

#include "graph/device.h"

namespace penelope {

// Null: everything is as the kernel expects. Else what is not.
const char * unsupported_reason(const ggml_tensor * node, const DeviceInfo & device);

// What the device says, and what it does not say. Views are not asked about: devices refuse them for the size of what they look at.
bool supports_node(const ggml_tensor * node, const DeviceInfo & device);

} // namespace penelope
