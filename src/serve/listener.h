// cpp-httplib's server on top of our own connections: one thread per connection, a fixed maximum, and an immediate 503
// above it.
#pragma once

#include "serve/connection.h"
#include "serve/metrics.h"

namespace penelope {

struct ListenOptions {
    std::string      host = "127.0.0.1";
    int              port = 8080; // 0: any free port
    std::string      cert, key;   // PEM files; empty: no TLS
    int              n_connections = 64;
    ConnectionLimits limits;
};

class Listener : public httplib::Server {
  public:
    // Throws Error when the certificate cannot be read.
    Listener(const ListenOptions & options, Metrics & metrics);
    ~Listener() override;

    // Returns the port, also when 0 was given. Throws Error(io) when the address is in use or not local.
    int  bind();
    void run(); // until stop()

  private:
    bool process_and_close_socket(socket_t socket) override;

    // Handles one request. Newer versions of cpp-httplib also take the addresses of both ends, which we do not use.
    template <typename Server, typename Setup>
    static auto answer(Server & server, httplib::Stream & stream, bool & closed, Setup setup, int)
        -> decltype(server.process_request(stream, false, closed, setup)) {
        return server.process_request(stream, false, closed, setup);
    }
    template <typename Server, typename Setup>
    static bool answer(Server & server, httplib::Stream & stream, bool & closed, Setup setup, long) {
        return server.process_request(stream, "", 0, "", 0, false, closed, setup);
    }

    ListenOptions                                 options_;
    Metrics &                                     metrics_;
    const std::string                             rejection_; // response above the connection limit
    std::unique_ptr<SSL_CTX, void (*)(SSL_CTX *)> tls_;
};

} // namespace penelope
