#include "serve/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace penelope {

namespace {

void address_of(const sockaddr_storage & storage, std::string & ip, int & port) {
    char text[INET6_ADDRSTRLEN] = "";
    if (storage.ss_family == AF_INET6) {
        const auto & v6 = reinterpret_cast<const sockaddr_in6 &>(storage);
        inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
        port = ntohs(v6.sin6_port);
    } else if (storage.ss_family == AF_INET) {
        const auto & v4 = reinterpret_cast<const sockaddr_in &>(storage);
        inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
        port = ntohs(v4.sin_port);
    }
    ip = text;
}

} // namespace

Connection *& Connection::current() {
    static thread_local Connection * connection = nullptr;
    return connection;
}

Connection::Connection(int socket, SSL_CTX * tls, const ConnectionLimits & limits, std::function<bool()> stopped)
    : socket_(socket), wants_tls_(tls != nullptr), ssl_(tls ? SSL_new(tls) : nullptr, SSL_free), limits_(limits),
      stopped_(std::move(stopped)), deadline_(Clock::now() + limits.request) {
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); // send small packets (tokens) at once
    fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
    if (ssl_ && SSL_set_fd(ssl_.get(), socket_) != 1) {
        ssl_.reset();
    }
}

Connection::~Connection() {
    if (ssl_) {
        SSL_shutdown(ssl_.get()); // sends close_notify, does not wait for the reply
    }
    ::shutdown(socket_, SHUT_WR);
    drain();
    ::close(socket_);
}

// Closing a socket with unread bytes resets the connection, and the client loses the error response. So the rest of a
// rejected request is read and discarded for a moment.
void Connection::drain() const {
    if (n_received_ <= limits_.request_bytes && !closing_) {
        return;
    }
    const auto until = Clock::now() + kDrainTime;
    char       piece[16384];
    for (size_t n_left = kMaxDrainBytes; n_left > 0 && wait(POLLIN, until);) {
        const ssize_t n = ::recv(socket_, piece, std::min(n_left, sizeof piece), 0);
        if (n <= 0) {
            return;
        }
        n_left -= size_t(n);
    }
}

// Polls in short intervals, so that a stalled client does not delay shutdown.
bool Connection::wait(short events, Clock::time_point until) const {
    while (true) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
        pollfd     one{ socket_, events, 0 };
        const int  n = ::poll(&one, 1, int(std::clamp<long long>(left.count(), 0, kPollInterval.count())));
        if (n > 0) {
            return true;
        }
        if ((n < 0 && errno != EINTR) || left.count() <= 0 || stopped_()) {
            return false;
        }
    }
}

bool Connection::handshake() {
    if (wants_tls_ && !ssl_) {
        return false; // out of memory: do not fall back to plain text
    }
    while (ssl_) {
        const int result = SSL_accept(ssl_.get());
        if (result == 1) {
            return true;
        }
        const int why = SSL_get_error(ssl_.get(), result);
        if ((why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) ||
            !wait(why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline_)) {
            return false;
        }
    }
    return true;
}

bool Connection::fill(Clock::time_point until) {
    char piece[16384];
    while (n_received_ <= limits_.request_bytes) {
        ssize_t n     = 0;
        bool    again = false;
        if (ssl_) {
            n             = SSL_read(ssl_.get(), piece, sizeof piece);
            const int why = n > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), int(n));
            again         = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
        } else {
            n     = ::recv(socket_, piece, sizeof piece, 0);
            again = n < 0 && (errno == EAGAIN || errno == EINTR);
        }
        if (n > 0) {
            buffer_.erase(0, start_);
            start_ = 0;
            buffer_.append(piece, size_t(n));
            n_received_ += size_t(n);
            return true;
        }
        if (!again || !wait(POLLIN, until)) {
            return false;
        }
    }
    return false;
}

bool Connection::wait_request() {
    n_received_ = buffer_.size() - start_;
    if (start_ == buffer_.size() && (stopped_() || !fill(Clock::now() + limits_.keep_alive))) {
        return false;
    }
    deadline_ = Clock::now() + limits_.request;
    return true;
}

bool Connection::peer_gone() const {
    pollfd one{ socket_, 0, 0 };
    return ::poll(&one, 1, 0) > 0 && (one.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

bool Connection::probe_is_due() {
    pollfd     one{ socket_, POLLRDHUP, 0 };
    const auto now = Clock::now();
    if (now < next_probe_ || ::poll(&one, 1, 0) <= 0 || (one.revents & POLLRDHUP) == 0) {
        return false;
    }
    next_probe_ = now + kProbe;
    return true;
}

bool Connection::is_readable() const {
    return start_ < buffer_.size() || wait(POLLIN, deadline_);
}

bool Connection::is_writable() const {
    return wait(POLLOUT, Clock::now() + limits_.write);
}

ssize_t Connection::read(char * to, size_t size) {
    if (start_ == buffer_.size() && (Clock::now() >= deadline_ || !fill(deadline_))) {
        closing_ = true;
        return -1;
    }
    const size_t n = std::min(size, buffer_.size() - start_);
    std::memcpy(to, buffer_.data() + start_, n);
    start_ += n;
    return ssize_t(n);
}

ssize_t Connection::write(const char * from, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t n     = 0;
        bool    again = false;
        if (ssl_) {
            n             = SSL_write(ssl_.get(), from + done, int(std::min<size_t>(size - done, 1 << 20)));
            const int why = n > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), int(n));
            again         = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
        } else {
            n     = ::send(socket_, from + done, size - done, MSG_NOSIGNAL);
            again = n < 0 && (errno == EAGAIN || errno == EINTR);
        }
        if (n > 0) {
            done += size_t(n);
        } else if (!again || !wait(POLLOUT, Clock::now() + limits_.write)) {
            closing_ = true;
            return -1;
        }
    }
    return ssize_t(done);
}

void Connection::get_remote_ip_and_port(std::string & ip, int & port) const {
    sockaddr_storage storage{};
    socklen_t        size = sizeof storage;
    getpeername(socket_, reinterpret_cast<sockaddr *>(&storage), &size);
    address_of(storage, ip, port);
}

void Connection::get_local_ip_and_port(std::string & ip, int & port) const {
    sockaddr_storage storage{};
    socklen_t        size = sizeof storage;
    getsockname(socket_, reinterpret_cast<sockaddr *>(&storage), &size);
    address_of(storage, ip, port);
}

} // namespace penelope
