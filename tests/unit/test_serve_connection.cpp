// Connections of the service over a pair of sockets: TLS that cannot be set up, clients that close one side or both.
#include "serve/connection.h"

#include <doctest/doctest.h>
#include <openssl/crypto.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

using namespace penelope;

namespace {

std::atomic<bool> out_of_memory{ false }; // for OpenSSL

void * take(size_t size, const char *, int) {
    return out_of_memory ? nullptr : std::malloc(size);
}
void * take_more(void * memory, size_t size, const char *, int) {
    return out_of_memory ? nullptr : std::realloc(memory, size);
}
void give(void * memory, const char *, int) {
    std::free(memory);
}

// OpenSSL takes these before its first allocation only.
const bool controls_memory = CRYPTO_set_mem_functions(take, take_more, give) == 1;

// A connection and its client's end.
struct Pair {
    explicit Pair(SSL_CTX * tls = nullptr) {
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        client     = ends[0];
        connection = std::make_unique<Connection>(ends[1], tls, ConnectionLimits(), [] { return false; });
    }
    ~Pair() { ::close(client); }
    Pair(const Pair &)             = delete;
    Pair & operator=(const Pair &) = delete;

    void send(const std::string & text) const {
        REQUIRE(::write(client, text.data(), text.size()) == ssize_t(text.size()));
    }

    int                         client;
    std::unique_ptr<Connection> connection;
};

} // namespace

// With the address sanitizer OpenSSL allocates before this file is initialized.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kAllocatesEarly = true;
#else
constexpr bool kAllocatesEarly = false;
#endif

TEST_CASE("without memory for TLS there is no connection, least of all a plain one" * doctest::skip(kAllocatesEarly)) {
    REQUIRE(controls_memory);
    const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX *)> tls(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
    REQUIRE(tls);
    out_of_memory = true;
    Pair pair(tls.get());
    out_of_memory = false;
    pair.send("GET /health HTTP/1.1\r\n\r\n");
    CHECK(!pair.connection->handshake());
}

TEST_CASE("without TLS there is nothing to shake hands about") {
    const Pair pair;
    CHECK(pair.connection->handshake());
}

TEST_CASE("a client that closes its sending side is still there") {
    const Pair pair;
    pair.send("a request");
    CHECK(!pair.connection->probe_is_due());
    REQUIRE(::shutdown(pair.client, SHUT_WR) == 0);
    CHECK(!pair.connection->peer_gone());
    CHECK(pair.connection->probe_is_due());
    CHECK(!pair.connection->probe_is_due()); // one a second
    CHECK(pair.connection->write("here", 4) == 4);
    CHECK(!pair.connection->peer_gone());
    char text[4];
    CHECK(::read(pair.client, text, sizeof text) == 4);
    REQUIRE(pair.connection->wait_request()); // what it sent before can be read
    char request[9];
    CHECK(pair.connection->read(request, sizeof request) == ssize_t(sizeof request));
    CHECK(!pair.connection->wait_request());
}

TEST_CASE("a client that closes the connection is gone") {
    const Pair pair;
    REQUIRE(::shutdown(pair.client, SHUT_RDWR) == 0);
    CHECK(pair.connection->peer_gone());
}
