// The greeting of ggml's RPC protocol, spoken with patience that ends: ggml's own client waits without limit and ends the
// process where this throws.
#pragma once

#include <string>

namespace penelope {

// Connects to "HOST:PORT", asks for the version and hangs up. Throws Error, naming the server and what is wrong with it.
void check_rpc_server(const std::string & endpoint, int patience_s = 5);

} // namespace penelope
