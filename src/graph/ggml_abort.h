// ggml knows no way back from a server whose connection is lost or a CUDA device that fails: it ends the process. Here that end
// gets the words of any other error.
#pragma once

#include "base/error.h"

namespace penelope {

// `end` may print and tidy up, must not call ggml and must not return. Broken invariants still end as ggml ends them.
void set_fatal_error_handler(void (*end)(const Error & error));

} // namespace penelope
