// Devices of other machines, through ggml's RPC servers. For trusted networks only: the protocol knows neither passwords nor
// encryption, and whoever reaches a server can make it run anything.
//
// ggml's client ends the process when a connection cannot be made or is lost. So every server is asked for its version before
// ggml connects, and a loss later ends as graph/ggml_abort.h says.
#pragma once

#include "base/error.h"
#include "graph/device.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

// Makes the devices of these servers ("HOST:PORT", IPv4 or a name) known to list_devices() as RPC0, RPC1, ... for the rest of
// the process. Throws Error within 10 s, naming the server, when one cannot be reached, does not answer, speaks another version
// of the protocol or serves somebody else; and when ggml was built without RPC.
void add_rpc_servers(const std::vector<std::string> & endpoints);

// What to say when one of them is gone.
Error rpc_connection_error();

bool is_rpc(const DeviceInfo & device);

// Servers do not tell which operations they run. A graph for one may hold what every CPU runs, and nothing that exists in this
// process alone.
bool rpc_supports(const ggml_tensor * node);

// Gives a graph whose tensors all lie on the backend's server a number, by which ggml knows that it has sent this very graph
// before. Called again whenever its tensors have moved.
void assign_graph_uid(ggml_backend_t backend, ggml_cgraph * graph);

// Over all connections, since they were made.
struct Traffic {
    uint64_t sent     = 0; // bytes
    uint64_t received = 0;
};
Traffic rpc_traffic();

} // namespace penelope
