#include "graph/ggml_abort.h"

#include "ggml.h"
#include "graph/rpc.h"

#include <cstdio>
#include <cstring>

namespace penelope {

namespace {

void (*end_process)(const Error & error) = nullptr;

void on_abort(const char * message) {
    if (std::strstr(message, "RPC")) {
        end_process(rpc_loss());
    }
    if (std::strstr(message, "CUDA error")) { // ggml has logged which
        end_process(Error(ErrorKind::device, "CUDA: the device failed, or its memory is full",
                          "use --device CPU, or a smaller context, batch or model"));
    }
    std::fprintf(stderr, "%s\n", message); // as ggml itself would
}

} // namespace

void end_lost_devices_by(void (*end)(const Error & error)) {
    end_process = end;
    ggml_set_abort_callback(on_abort);
}

} // namespace penelope
