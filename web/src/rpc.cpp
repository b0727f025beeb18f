// src/graph/rpc.h for browsers, which reach no other machine's devices.
#include "graph/rpc.h"

namespace penelope {

void add_rpc_servers(const std::vector<std::string> & /*endpoints*/) {
    throw rpc_connection_error();
}

Error rpc_connection_error() {
    return Error(ErrorKind::unsupported, "RPC: this build has none");
}

bool is_rpc(const DeviceInfo & /*device*/) {
    return false;
}

bool rpc_supports(const ggml_tensor * /*node*/) {
    return false;
}

void assign_graph_uid(ggml_backend_t /*backend*/, ggml_cgraph * /*graph*/) {}

Traffic rpc_traffic() {
    return {};
}

} // namespace penelope
