#include "graph/rpc.h"

#include "base/format.h"
#include "graph/node_order.h"
#include "graph/rpc_hello.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>

namespace penelope {

namespace {

// A server that disappears without closing the connection is detected after this time.
constexpr int kKeepaliveSeconds = 9;

using AddServer = ggml_backend_reg_t (*)(const char * endpoint);

struct Servers {
    std::vector<std::string>      endpoints;
    std::vector<ggml_backend_ptr> open;    // ggml closes a connection without a backend
    std::set<int>                 sockets; // of these connections
};

// Never destroyed: freeing a backend at exit would contact a server that may be gone.
Servers & servers() {
    static Servers * all = new Servers;
    return *all;
}

std::set<int> connected_sockets() {
    std::set<int>   sockets;
    std::error_code ec;
    for (const auto & entry : std::filesystem::directory_iterator("/proc/self/fd", ec)) {
        const int   fd = std::atoi(entry.path().filename().c_str());
        sockaddr_in peer{};
        socklen_t   size = sizeof(peer);
        if (getpeername(fd, reinterpret_cast<sockaddr *>(&peer), &size) == 0 && peer.sin_family == AF_INET) {
            sockets.insert(fd);
        }
    }
    return sockets;
}

// Without keepalive a connection to a machine that lost power stays open for hours.
void enable_keepalive(int socket) {
    const auto set = [&](int level, int option, int value) {
        setsockopt(socket, level, option, &value, sizeof(value));
    };
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepaliveSeconds / 3);
    set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepaliveSeconds / 3);
    set(IPPROTO_TCP, TCP_KEEPCNT, 2);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, kKeepaliveSeconds * 1000);
}

} // namespace

Error rpc_connection_error() {
    return Error(ErrorKind::device, "RPC server " + join(servers().endpoints, " or ") + ": the connection is lost",
                 "is it still running, and can it run this model? its own output says more");
}

void add_rpc_servers(const std::vector<std::string> & endpoints) {
    ggml_backend_reg_t reg = ggml_backend_reg_by_name("RPC");
    const auto         add_server =
        reg ? reinterpret_cast<AddServer>(ggml_backend_reg_get_proc_address(reg, "ggml_backend_rpc_add_server"))
                    : nullptr;
    if (!add_server) {
        throw Error(ErrorKind::unsupported, "--rpc: this build of ggml has no RPC backend",
                    "build it with PENELOPE_RPC=ON");
    }
    for (const std::string & endpoint : endpoints) {
        check_rpc_server(endpoint);
    }
    servers().endpoints = endpoints;
    std::signal(SIGPIPE,
                SIG_IGN); // ggml's client writes to servers that may be gone and checks the result of write()
    const std::set<int> before = connected_sockets();
    for (const std::string & endpoint : endpoints) {
        ggml_backend_reg_t server = add_server(endpoint.c_str());
        if (!server) {
            throw Error(ErrorKind::device, "RPC server " + endpoint + ": has no device");
        }
        ggml_backend_register(server);
        servers().open.emplace_back(ggml_backend_dev_init(ggml_backend_reg_dev_get(server, 0), nullptr));
    }
    for (int socket : connected_sockets()) {
        if (!before.count(socket)) {
            enable_keepalive(socket);
            servers().sockets.insert(socket);
        }
    }
}

bool is_rpc(const DeviceInfo & device) {
    return std::strcmp(ggml_backend_reg_name(ggml_backend_dev_backend_reg(device.dev)), "RPC") == 0;
}

bool rpc_supports(const ggml_tensor * node) {
    switch (node->op) {
        case GGML_OP_MAP_CUSTOM1:
        case GGML_OP_MAP_CUSTOM2:
        case GGML_OP_MAP_CUSTOM3:
        case GGML_OP_CUSTOM: return false;
        default: return true;
    }
}

// Only ggml's scheduler assigns graph uids. All tensors are on one backend, so it does not change the graph. It
// requires a CPU backend as the last one.
void assign_graph_uid(ggml_backend_t backend, ggml_cgraph * graph) {
    const ggml_backend_ptr cpu(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr));
    ggml_backend_t         backends[] = { backend, cpu.get() };
    NodeOrder              order;
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        order.add(ggml_graph_node(graph, i));
    }
    const ggml_backend_sched_ptr scheduler(ggml_backend_sched_new(backends, nullptr, 2, 2 * order.n_tensors(), false,
                                                                  false)); // each node may have one view_src
    ggml_backend_sched_split_graph(scheduler.get(), graph);
}

Traffic rpc_traffic() {
    Traffic traffic;
    for (int socket : servers().sockets) {
        tcp_info  info{};
        socklen_t size = sizeof(info);
        if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
            traffic.sent += info.tcpi_bytes_sent;
            traffic.received += info.tcpi_bytes_received;
        }
    }
    return traffic;
}

} // namespace penelope
