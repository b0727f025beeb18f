// One client connection, plain or TLS, with limits on the time and size of a request. The time limit covers the whole
// request, so a client that sends one byte at a time is dropped too.
#pragma once

#include <httplib.h>
#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <string>

namespace penelope {

struct ConnectionLimits {
    std::chrono::milliseconds keep_alive{ 5000 };      // between two requests
    std::chrono::milliseconds request{ 20000 };        // from first to last byte
    std::chrono::milliseconds write{ 10000 };          // without the client reading anything
    size_t                    request_bytes = 1 << 20; // header and body
};

class Connection : public httplib::Stream {
  public:
    // Owns the socket. tls: null for plain HTTP. stopped: the server shuts down and no longer waits for clients.
    Connection(int socket, SSL_CTX * tls, const ConnectionLimits & limits, std::function<bool()> stopped);
    ~Connection() override;
    Connection(const Connection &)             = delete;
    Connection & operator=(const Connection &) = delete;

    bool handshake();       // TLS handshake; true without TLS
    bool wait_request();    // true: the first byte has arrived, the request timer starts
    bool peer_gone() const; // the connection is closed both ways or reset
    // True at most once per second while the client has closed its sending side. The client may still read or may be
    // gone; only sending tells, because a client that is gone answers with a reset.
    bool probe_is_due();
    // Whether the current request may get interim responses (100 Continue) before the final one.
    void allow_interim(bool allowed) { interim_ = allowed; }
    bool interim_allowed() const { return interim_; }
    void close_after_response() { closing_ = true; }
    bool closing() const { return closing_; }

    bool     is_readable() const override;
    bool     is_writable() const override;
    ssize_t  read(char * to, size_t size) override;
    ssize_t  write(const char * from, size_t size) override;
    void     get_remote_ip_and_port(std::string & ip, int & port) const override;
    void     get_local_ip_and_port(std::string & ip, int & port) const override;
    socket_t socket() const override { return socket_; }

    // The connection whose request the current thread handles.
    static Connection *& current();

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds kDrainTime{ 1000 };
    static constexpr std::chrono::milliseconds kPollInterval{ 100 }; // between two checks of stopped()
    static constexpr std::chrono::milliseconds kProbe{ 1000 };
    static constexpr size_t                    kMaxDrainBytes = 16 << 20;

    bool wait(short events, Clock::time_point until) const;
    void drain() const;
    bool fill(Clock::time_point until); // fills buffer_; false: closed, failed, stopped or timed out

    int                                   socket_;
    bool                                  wants_tls_;
    std::unique_ptr<SSL, void (*)(SSL *)> ssl_; // null without TLS, or when the setup failed
    ConnectionLimits                      limits_;
    std::function<bool()>                 stopped_;
    Clock::time_point                     deadline_;
    size_t                                n_received_ = 0; // bytes of this request
    std::string                           buffer_;         // received, not yet read
    size_t                                start_   = 0;
    bool                                  closing_ = false;
    bool                                  interim_ = false;
    Clock::time_point                     next_probe_{};
};

} // namespace penelope
