// Devices on other machines, through ggml's RPC servers. For trusted networks only: the protocol has no authentication
// and no encryption, and whoever reaches a server can run code on it.
//
// ggml's client ends the process when it cannot connect or loses the connection. So each server's version is checked
// before ggml connects (graph/rpc_hello.h); a connection lost later ends the process as described in
// graph/ggml_abort.h.
#pragma once

#include "base/error.h"
#include "graph/device.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

// Adds the devices of these servers ("HOST:PORT", IPv4 or a host name) to list_devices() as RPC0, RPC1, ... until the
// process ends. Throws Error within 10 s, naming the server, when it cannot be reached, does not answer, has another
// protocol version or is busy with another client; also when ggml was built without RPC.
void add_rpc_servers(const std::vector<std::string> & endpoints);

// The error for a lost connection.
Error rpc_connection_error();

bool is_rpc(const DeviceInfo & device);

// Servers do not report op support. Allowed is what every CPU backend supports; custom nodes of this process are not.
bool rpc_supports(const ggml_tensor * node);

// Sets cgraph->uid for a graph whose tensors are all on the server, so that ggml does not send an unchanged graph
// again. Call it again whenever tensors have moved.
void assign_graph_uid(ggml_backend_t backend, ggml_cgraph * graph);

// Sum over all connections.
struct Traffic {
    uint64_t sent     = 0; // bytes
    uint64_t received = 0;
};
Traffic rpc_traffic();

} // namespace penelope
