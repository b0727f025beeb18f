// The HELLO request of ggml's RPC protocol, with a timeout. ggml's own client waits forever and ends the process on
// failure; this throws.
#pragma once

#include <string>

namespace penelope {

// Connects to "HOST:PORT", reads the protocol version and disconnects. Throws Error with the server and the reason.
void check_rpc_server(const std::string & endpoint, int patience_s = 5);

} // namespace penelope
