#include "graph/rpc_hello.h"

#include "base/clock.h"
#include "base/error.h"

#include "ggml-rpc.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>

namespace penelope {

namespace {

constexpr uint8_t kHello      = 14; // RPC_CMD_HELLO, the same in all versions
constexpr size_t  kCapsBytes  = 24; // transport capabilities; zero: TCP only
constexpr size_t  kReplyBytes = 4 + kCapsBytes;

[[noreturn]] void refuse(const std::string & endpoint, ErrorKind kind, const std::string & why,
                         const std::string & hint) {
    throw Error(kind, "RPC server " + endpoint + ": " + why, hint);
}

// RAII file descriptor.
class Descriptor {
  public:
    Descriptor() = default;
    ~Descriptor() {
        if (fd >= 0) {
            close(fd);
        }
    }
    Descriptor(const Descriptor &)             = delete;
    Descriptor & operator=(const Descriptor &) = delete;

    int fd = -1;
};

class Connection {
  public:
    Connection(const std::string & endpoint, int patience_s) : endpoint_(endpoint), patience_s_(patience_s) {
        const size_t colon = endpoint.find(':');
        int          port  = 0;
        if (colon == std::string::npos || colon == 0 ||
            std::from_chars(endpoint.data() + colon + 1, endpoint.data() + endpoint.size(), port).ptr !=
                endpoint.data() + endpoint.size() ||
            port < 1 || port > 65535) {
            refuse(endpoint, ErrorKind::usage, "is not HOST:PORT", "--rpc 192.168.1.7:50052");
        }
        addrinfo hints{}, *found = nullptr;
        hints.ai_family   = AF_INET; // ggml connects with IPv4 only
        hints.ai_socktype = SOCK_STREAM;
        const int failed =
            getaddrinfo(endpoint.substr(0, colon).c_str(), endpoint.substr(colon + 1).c_str(), &hints, &found);
        if (failed != 0) {
            refuse(endpoint, ErrorKind::not_found, gai_strerror(failed), "");
        }
        socket_.fd          = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        const int connected = socket_.fd < 0 ? -1 : connect(socket_.fd, found->ai_addr, found->ai_addrlen);
        const int why       = errno;
        freeaddrinfo(found);
        if (connected != 0 && why != EINPROGRESS) {
            fail(why);
        }
        wait_for(POLLOUT, "cannot be reached");
        int       error = 0;
        socklen_t size  = sizeof(error);
        getsockopt(socket_.fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0) {
            fail(error);
        }
    }

    void send(const void * data, size_t n) {
        wait_for(POLLOUT, "does not listen");
        if (::send(socket_.fd, data, n, MSG_NOSIGNAL) != ssize_t(n)) {
            not_a_server();
        }
    }

    void receive(void * data, size_t n) {
        for (size_t got = 0; got < n;) {
            wait_for(POLLIN, "does not answer");
            const ssize_t part = recv(socket_.fd, static_cast<char *>(data) + got, n - got, 0);
            if (part <= 0) {
                not_a_server();
            }
            got += size_t(part);
        }
    }

    [[noreturn]] void not_a_server() {
        refuse(endpoint_, ErrorKind::device, "does not speak the protocol of ggml's RPC servers",
               "this program speaks version " + std::to_string(RPC_PROTO_MAJOR_VERSION) + "." +
                   std::to_string(RPC_PROTO_MINOR_VERSION) + "; penelope-rpc-server of the same build does, too");
    }

  private:
    [[noreturn]] void fail(int error) {
        refuse(endpoint_, ErrorKind::device, std::strerror(error), "start penelope-rpc-server there");
    }

    void wait_for(short events, const char * otherwise) {
        pollfd    waited{ socket_.fd, events, 0 };
        const int left = 1000 * patience_s_ - int(watch_.elapsed_ms());
        if (poll(&waited, 1, std::max(left, 0)) <= 0) {
            refuse(endpoint_, ErrorKind::device, otherwise + (" within " + std::to_string(patience_s_)) + " s",
                   "a server serves one program at a time");
        }
    }

    std::string endpoint_;
    int         patience_s_;
    Stopwatch   watch_;
    Descriptor  socket_;
};

} // namespace

void check_rpc_server(const std::string & endpoint, int patience_s) {
    Connection connection(endpoint, patience_s);

    // | command | payload size, 8 bytes | capabilities |
    std::array<uint8_t, 1 + 8 + kCapsBytes> request{};
    request[0]          = kHello;
    const uint64_t size = kCapsBytes;
    std::memcpy(request.data() + 1, &size, sizeof(size));
    connection.send(request.data(), request.size());

    // | payload size, 8 bytes | major, minor, patch, 0 | capabilities |
    uint64_t reply_size = 0;
    connection.receive(&reply_size, sizeof(reply_size));
    if (reply_size < 3 || reply_size > 1024) {
        connection.not_a_server();
    }
    std::array<uint8_t, 1024> reply{};
    connection.receive(reply.data(), size_t(reply_size));
    if (reply[0] != RPC_PROTO_MAJOR_VERSION || reply[1] > RPC_PROTO_MINOR_VERSION || reply_size != kReplyBytes) {
        const auto version = [](int major, int minor) { return std::to_string(major) + "." + std::to_string(minor); };
        refuse(endpoint, ErrorKind::device,
               "speaks version " + version(reply[0], reply[1]) + " of the protocol, not " +
                   version(RPC_PROTO_MAJOR_VERSION, RPC_PROTO_MINOR_VERSION),
               "start the penelope-rpc-server of this build there");
    }
}

} // namespace penelope
