#include "serve/server.h"

namespace penelope {

namespace {

// The host part of a URL that works on this machine.
std::string host_in_address(const std::string & host) {
    if (host.find(':') != std::string::npos) {
        return host == "::" ? "[::1]" : "[" + host + "]";
    }
    return host == "0.0.0.0" ? "127.0.0.1" : host;
}

} // namespace

Server::Server(std::shared_ptr<const Engine> engine, const ServerOptions & options)
    : worker_(std::move(engine), options.worker, metrics_), service_(worker_, metrics_, options.service),
      listener_(options.listen, metrics_) {
    // cpp-httplib's limit checks Content-Length; the connection's checks the bytes received.
    listener_.set_payload_max_length(options.listen.limits.request_bytes);
    install_request_checks(listener_, service_);
    add_info_routes(listener_, service_);
    add_openai_routes(listener_, service_);
    add_mapped_routes(listener_, service_);
    add_latent_routes(listener_, service_);
    add_page(listener_);
    port_    = listener_.bind();
    address_ = (options.listen.cert.empty() ? "http://" : "https://") + host_in_address(options.listen.host) + ":" +
               std::to_string(port_);
}

Server::~Server() {
    stop();
}

std::string Server::address() const {
    return address_;
}

void Server::start() {
    thread_ = std::thread([this] { listener_.run(); });
}

void Server::close() {
    worker_.close();
}

bool Server::wait_idle(std::chrono::milliseconds time) {
    if (!worker_.wait_idle(time)) {
        return false;
    }
    const auto until = std::chrono::steady_clock::now() + time;
    while (service_.n_replying > 0 && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return service_.n_replying == 0;
}

void Server::stop() {
    worker_.stop();
    if (thread_.joinable()) {
        // Clients of cancelled jobs still get their error response.
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        while (service_.n_replying > 0 && std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        listener_.stop();
        thread_.join();
    }
}

} // namespace penelope
