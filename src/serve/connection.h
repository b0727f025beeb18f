// One connection of a client: plain or TLS, with limits on how long and how much a request may take. A client that
// sends a byte now and then is dropped when the request's time is over, whatever it sends.
#pragma once

#include <httplib.h>
#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <string>

namespace penelope {

struct ConnectionLimits {
    std::chrono::milliseconds keep_alive{ 5000 };      // between two requests
    std::chrono::milliseconds request{ 20000 };        // from its first to its last byte
    std::chrono::milliseconds write{ 10000 };          // without the client taking anything
    size_t                    request_bytes = 1 << 20; // head and body
};

class Connection : public httplib::Stream {
  public:
    // Takes the socket. tls: null for none. stopped: the server is to end, and waits for no client any more.
    Connection(int socket, SSL_CTX * tls, const ConnectionLimits & limits, std::function<bool()> stopped);
    ~Connection() override;
    Connection(const Connection &)             = delete;
    Connection & operator=(const Connection &) = delete;

    bool handshake();       // of TLS; true without it
    bool wait_request();    // true: a byte of the next one is there, its time starts
    bool peer_gone() const; // the connection is closed both ways or reset
    // True at most once a second while the client has closed its sending side. It may still read, or it may be gone:
    // that shows when something is sent to it, because a client that is gone answers with a reset.
    bool probe_is_due();
    // Whether the request that is handled may be answered with interim responses before the final one.
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

    // The connection whose request this thread handles.
    static Connection *& current();

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds kDrainTime{ 1000 };
    static constexpr std::chrono::milliseconds kPollInterval{ 100 }; // between two looks at stopped()
    static constexpr std::chrono::milliseconds kProbe{ 1000 };
    static constexpr size_t                    kMaxDrainBytes = 16 << 20;

    bool wait(short events, Clock::time_point until) const;
    void drain() const;
    bool fill(Clock::time_point until); // the buffer; false: closed, failed, stopped or too late

    int                                   socket_;
    bool                                  wants_tls_;
    std::unique_ptr<SSL, void (*)(SSL *)> ssl_; // null without TLS, and when it could not be set up
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
