// The HTTP server: worker pool, routes and listener.
#pragma once

#include "serve/http.h"

namespace penelope {

struct ServerOptions {
    PoolOptions    worker;
    ServiceOptions service;
    ListenOptions  listen;
};

class Server {
  public:
    // Allocates the caches and binds the address. Throws Error.
    Server(std::shared_ptr<const Engine> engine, const ServerOptions & options);
    ~Server(); // stop()

    std::string            address() const; // "http://127.0.0.1:8080"
    int                    port() const { return port_; }
    const SessionOptions & session_options() const { return worker_.options(); }

    void start();
    void close();                                   // rejects new requests; running answers continue
    bool wait_idle(std::chrono::milliseconds time); // true: every reply has been sent
    void stop();

  private:
    Metrics     metrics_;
    WorkerPool  worker_;
    Service     service_;
    Listener    listener_;
    std::string address_;
    int         port_ = 0;
    std::thread thread_;
};

} // namespace penelope
