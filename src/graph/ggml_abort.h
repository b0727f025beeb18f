// Turns GGML_ABORT for a lost RPC connection or a failed CUDA device into a normal error message. ggml cannot recover
// from these: the process ends, but the user sees an Error instead of a stack trace.
#pragma once

#include "base/error.h"

namespace penelope {

// `end` may print and clean up. It must not call ggml and must not return. Failed assertions still abort as usual.
void set_fatal_error_handler(void (*end)(const Error & error));

} // namespace penelope
