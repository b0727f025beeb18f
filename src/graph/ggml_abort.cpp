#include "graph/ggml_abort.h"

#include "ggml.h"
#include "graph/rpc.h"

#include <cstdio>
#include <cstring>

namespace penelope {

namespace {

void (*fatal_error_handler)(const Error & error) = nullptr;

void on_abort(const char * message) {
    if (std::strstr(message, "RPC")) {
        fatal_error_handler(rpc_connection_error());
    }
    if (std::strstr(message, "CUDA error")) { // ggml has already logged the details
        fatal_error_handler(Error(ErrorKind::device, "CUDA: the device failed, or its memory is full",
                                  "use --device CPU, or a smaller context, batch or model"));
    }
    std::fprintf(stderr, "%s\n", message); // ggml's default
}

} // namespace

void set_fatal_error_handler(void (*end)(const Error & error)) {
    fatal_error_handler = end;
    ggml_set_abort_callback(on_abort);
}

} // namespace penelope
