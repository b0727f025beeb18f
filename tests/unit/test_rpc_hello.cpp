// The greeting of RPC servers: those that do not answer leave nothing open behind.
#include <doctest/doctest.h>

#include "graph/rpc_hello.h"
#include "support/errors.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

using namespace penelope;

namespace {

size_t n_open_files() {
    size_t n = 0;
    for (const auto & entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        n += !entry.path().empty();
    }
    return n;
}

struct Socket {
    Socket() : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
    explicit Socket(int type) : fd(socket(AF_INET, type, 0)) {}
    ~Socket() { close(fd); }
    Socket(const Socket &)             = delete;
    Socket & operator=(const Socket &) = delete;
    int      fd;
};

// Accepts nothing. Its queue takes one connection; who comes after that waits for the handshake.
struct DeafServer {
    explicit DeafServer(int n_queue) {
        address.sin_family      = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size          = sizeof(address);
        REQUIRE(bind(listener.fd, reinterpret_cast<sockaddr *>(&address), size) == 0);
        REQUIRE(listen(listener.fd, n_queue) == 0);
        REQUIRE(getsockname(listener.fd, reinterpret_cast<sockaddr *>(&address), &size) == 0);
    }
    void join(const Socket & client) const {
        const int ignored = connect(client.fd, reinterpret_cast<const sockaddr *>(&address), sizeof(address));
        (void) ignored; // it does not wait
    }
    std::string endpoint() const { return "127.0.0.1:" + std::to_string(ntohs(address.sin_port)); }

    Socket      listener;
    sockaddr_in address{};
};

} // namespace

TEST_CASE("an unreachable server leaks no descriptor") {
    const DeafServer server(0);
    const Socket     others[] = { Socket(SOCK_STREAM | SOCK_NONBLOCK), Socket(SOCK_STREAM | SOCK_NONBLOCK),
                                  Socket(SOCK_STREAM | SOCK_NONBLOCK) };
    for (const Socket & other : others) {
        server.join(other);
    }
    const size_t before = n_open_files();
    const Error  error  = test::error_of([&] { check_rpc_server(server.endpoint(), 1); });
    CHECK(test::contains(error.message(), "cannot be reached within 1 s"));
    CHECK(n_open_files() == before);
}

TEST_CASE("neither does a server that accepts and sends nothing") {
    std::string  nobody;
    const size_t before = n_open_files();
    {
        const DeafServer server(4);
        const size_t     serving = n_open_files();
        CHECK(test::contains(test::error_of([&] { check_rpc_server(server.endpoint(), 1); }).message(),
                             "does not answer within 1 s"));
        CHECK(n_open_files() == serving);
        nobody = server.endpoint();
    }
    CHECK(test::contains(test::error_of([&] { check_rpc_server(nobody, 1); }).message(), "refused"));
    CHECK(n_open_files() == before);
}
