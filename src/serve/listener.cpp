#include "serve/listener.h"

#include "base/error.h"
#include "base/log.h"
#include "serve/errors.h"

#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <list>
#include <mutex>
#include <thread>

namespace penelope {

namespace {

constexpr int kBacklog = 256; // cpp-httplib's 5 makes bursts of clients wait a second for the TCP retry

// One thread per connection. Above the limit, or when the system has no more threads, the accepting thread handles the
// connection itself and only rejects it: too_many() tells it so.
class ConnectionThreads : public httplib::TaskQueue {
  public:
    ConnectionThreads(int limit, Metrics & metrics) : limit_(limit), metrics_(metrics) {}

    static bool & too_many() {
        static thread_local bool value = false;
        return value;
    }

    // Returns void in older versions of cpp-httplib, bool in newer ones.
    using Enqueued = decltype(std::declval<httplib::TaskQueue &>().enqueue(nullptr));

    Enqueued enqueue(std::function<void()> handle) override {
        join_ended();
        if (n_running_ >= limit_ || !start(handle)) {
            too_many() = true;
            handle();
            too_many() = false;
        }
        return static_cast<Enqueued>(true);
    }

    void shutdown() override {
        while (n_running_ > 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        while (true) {
            join_ended();
            const std::lock_guard<std::mutex> lock(mutex_);
            if (threads_.empty() && ended_.empty()) {
                return;
            }
        }
    }

  private:
    // False when the system has no thread or memory left.
    bool start(const std::function<void()> & handle) {
        metrics_.connections = ++n_running_;
        const std::lock_guard<std::mutex> lock(mutex_);
        std::list<std::thread>            one;
        try {
            const auto place = one.emplace(one.end());
            *place           = std::thread([this, handle, place] {
                handle();
                metrics_.connections = --n_running_;
                const std::lock_guard<std::mutex> done(mutex_);
                ended_.splice(ended_.end(), threads_, place);
            });
        } catch (const std::exception &) {
            metrics_.connections = --n_running_;
            return false;
        }
        threads_.splice(threads_.end(), one);
        return true;
    }

    void join_ended() {
        std::list<std::thread> ended;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            ended.swap(ended_);
        }
        for (std::thread & thread : ended) {
            thread.join();
        }
    }

    const int              limit_;
    Metrics &              metrics_;
    std::atomic<int>       n_running_{ 0 };
    std::mutex             mutex_;
    std::list<std::thread> threads_, ended_;
};

// Built in advance, because memory may be short when there are too many connections.
std::string rejection_text() {
    const std::string body = dump_json(openai_error(RequestError(503, "too many open connections", "", "connections")));
    return "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
           "Content-Type: application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
}

void reject(int socket, const std::string & text) {
    const ssize_t ignored = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    (void) ignored;
    ::shutdown(socket, SHUT_WR);
    ::close(socket);
}

// Disables two features of cpp-httplib that this server does not need: range requests, which can ask for thousands of
// parts, and form parsing, which limits bodies to 8 KiB (`curl -d` labels every body a form).
void normalize_request(httplib::Request & request) {
    request.ranges.clear();
    request.headers.erase("Content-Type");
}

std::string tls_reason() {
    char text[256];
    ERR_error_string_n(ERR_get_error(), text, sizeof text);
    return text;
}

} // namespace

Listener::Listener(const ListenOptions & options, Metrics & metrics)
    : options_(options), metrics_(metrics), rejection_(rejection_text()), tls_(nullptr, SSL_CTX_free) {
    if (!options.cert.empty()) {
        tls_.reset(SSL_CTX_new(TLS_server_method()));
        SSL_CTX_set_min_proto_version(tls_.get(), TLS1_2_VERSION);
        SSL_CTX_set_mode(tls_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        if (SSL_CTX_use_certificate_chain_file(tls_.get(), options.cert.c_str()) != 1) {
            throw Error(ErrorKind::format, options.cert + ": cannot read certificate: " + tls_reason(),
                        "give a PEM file");
        }
        if (SSL_CTX_use_PrivateKey_file(tls_.get(), options.key.c_str(), SSL_FILETYPE_PEM) != 1) {
            throw Error(ErrorKind::format,
                        options.key + ": private key does not match the certificate: " + tls_reason(),
                        "give the PEM file of the private key");
        }
    }
    new_task_queue = [this] { return new ConnectionThreads(options_.n_connections, metrics_); };
    // Only SO_REUSEADDR: the default of cpp-httplib also sets SO_REUSEPORT, so two servers could share a port.
    set_socket_options([](socket_t socket) {
        const int on = 1;
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
}

Listener::~Listener() = default;

int Listener::bind() {
    const bool any  = options_.port == 0;
    int        port = options_.port;
    errno           = 0;
    if (any) {
        port = bind_to_any_port(options_.host);
    }
    if (any ? port <= 0 : !bind_to_port(options_.host, port)) {
        throw Error(ErrorKind::io,
                    options_.host + ":" + std::to_string(options_.port) +
                        ": cannot bind: " + (errno ? std::strerror(errno) : "no such address"),
                    "the port may be in use; choose another with --port (0: any free one) or --host");
    }
    ::listen(svr_sock_, kBacklog);
    return port;
}

void Listener::run() {
    listen_after_bind();
}

bool Listener::process_and_close_socket(socket_t socket) {
    if (ConnectionThreads::too_many()) {
        metrics_.count_response(503);
        reject(socket, rejection_);
        return false;
    }
    Connection connection(socket, tls_.get(), options_.limits, [this] { return svr_sock_ == INVALID_SOCKET; });
    Connection::current() = &connection;
    bool good             = false;
    try {
        good = connection.handshake();
        while (good && connection.wait_request()) {
            bool closed = false;
            good        = answer(*this, connection, closed, normalize_request, 0) && !closed && !connection.closing();
        }
    } catch (const std::exception & error) { // e.g. out of memory: close this connection, not the server
        log_error(std::string("serve: ") + error.what());
        good = false;
    }
    Connection::current() = nullptr;
    return good;
}

} // namespace penelope
