// penelope-rpc-server HOST:PORT: makes a device of this machine available to programs on other machines, through ggml's
// RPC server. For trusted networks only: there is no authentication, and clients can do anything.
#include "base/error.h"
#include "graph/device.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using StartServer = void (*)(const char * endpoint, const char * cache_dir, size_t n_threads, size_t n_devices,
                             ggml_backend_dev_t * devices);

constexpr const char * usage =
    "usage: penelope-rpc-server HOST:PORT [DEVICE [THREADS]]\n"
    "Serves DEVICE (default: auto, see penelope --list-devices) to one program at a time: penelope --rpc HOST:PORT.\n"
    "For trusted networks only: there is no authentication and no encryption.\n";

int serve(const std::string & endpoint, const std::string & name, int n_threads) {
    const penelope::DeviceInfo device = penelope::find_device(name);
    ggml_backend_reg_t         reg    = ggml_backend_reg_by_name("RPC");
    const auto                 start =
        reg ? reinterpret_cast<StartServer>(ggml_backend_reg_get_proc_address(reg, "ggml_backend_rpc_start_server"))
                            : nullptr;
    if (!start) {
        throw penelope::Error(penelope::ErrorKind::unsupported,
                              "penelope-rpc-server: this build of ggml has no RPC backend",
                              "build it with PENELOPE_RPC=ON");
    }
    ggml_backend_dev_t devices[] = { device.dev };
    start(endpoint.c_str(), nullptr, size_t(n_threads > 0 ? n_threads : penelope::default_thread_count()), 1, devices);
    throw penelope::Error(penelope::ErrorKind::io, endpoint + ": cannot listen", "is the port in use?");
}

} // namespace

int main(int argc, char ** argv) {
    if (argc < 2 || argc > 4 || argv[1][0] == '-') {
        const bool is_asked = argc == 2 && (std::string(argv[1]) == "-h" || std::string(argv[1]) == "--help");
        std::fputs(usage, is_asked ? stdout : stderr);
        return is_asked ? 0 : 2;
    }
    try {
        return serve(argv[1], argc > 2 ? argv[2] : "auto", argc > 3 ? std::atoi(argv[3]) : 0);
    } catch (const penelope::Error & error) {
        std::fprintf(stderr, "error: %s\nhint: %s\n", error.what(), error.hint.c_str());
        return 1;
    }
}
