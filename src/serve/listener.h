// The HTTP server of cpp-httplib with our own connections under it: each has a thread, there are only so many, and one
// too many is told so at once.
#pragma once

#include "serve/connection.h"
#include "serve/metrics.h"

namespace penelope {

struct ListenOptions {
    std::string      host = "127.0.0.1";
    int              port = 8080; // 0: any that is free
    std::string      cert, key;   // PEM files; empty: no TLS
    int              n_connections = 64;
    ConnectionLimits limits;
};

class Listener : public httplib::Server {
  public:
    // Throws Error when the certificate cannot be read.
    Listener(const ListenOptions & options, Metrics & metrics);
    ~Listener() override;

    // Throws Error(io) when the address is taken or not ours. The port, also when any was asked for.
    int  bind();
    void run(); // until stop()

  private:
    bool process_and_close_socket(socket_t socket) override;

    // A request and its reply. Newer versions of the library want to be told the addresses of both ends, which nothing here asks for.
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
    const std::string                             rejection_; // the answer to one connection too many
    std::unique_ptr<SSL_CTX, void (*)(SSL_CTX *)> tls_;
};

} // namespace penelope
