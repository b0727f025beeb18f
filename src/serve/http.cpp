#include "serve/http.h"

#include "base/format.h"
#include "base/log.h"

#include <strings.h>

#include <algorithm>
#include <cctype>

namespace penelope {

namespace {

constexpr std::chrono::milliseconds kPollInterval{ 50 }; // between two checks whether the client is still there

bool is_public_path(const std::string & path) {
    return path == "/health" || path == "/v1/health" || path == "/" || path == "/favicon.ico";
}

std::string api_key_of(const httplib::Request & request) {
    const std::string           header   = request.get_header_value("Authorization");
    static constexpr const char scheme[] = "bearer ";
    if (strncasecmp(header.c_str(), scheme, sizeof scheme - 1) == 0) {
        return without_blanks(header.substr(sizeof scheme - 1));
    }
    return request.get_header_value("x-api-key");
}

// Exactly one body length. With several, a proxy might use another one than we do (request smuggling).
bool has_one_length(const httplib::Request & request) {
    return request.get_header_value_count("Content-Length") + request.get_header_value_count("Transfer-Encoding") <= 1;
}

// cpp-httplib reads the body of POST only; other methods must not have one.
bool body_is_read(const httplib::Request & request) {
    const bool has_none = request.get_header_value("Content-Length") == "0" || !request.has_header("Content-Length");
    return request.method == "POST" || (has_none && !request.has_header("Transfer-Encoding"));
}

// "127.0.0.1:8080" -> "127.0.0.1", "[::1]:8080" -> "[::1]"
std::string without_port(const std::string & host) {
    const size_t colon = host.rfind(':');
    return colon == std::string::npos || host.find(']', colon) != std::string::npos ? host : host.substr(0, colon);
}

bool contains(const std::vector<std::string> & list, const std::string & one) {
    return std::find(list.begin(), list.end(), one) != list.end();
}

// Guards a local server against web pages: DNS rebinding shows in Host, cross-origin requests in Origin.
void check_origin_and_key(const Service & service, const httplib::Request & request) {
    const std::string host = request.get_header_value("Host");
    if (!service.options.hosts.empty() && !contains(service.options.hosts, without_port(host))) {
        throw RequestError(403, "host '" + without_port(host).substr(0, 80) + "' is not allowed", "", "host");
    }
    if (!has_one_length(request)) {
        throw RequestError(400, "conflicting Content-Length headers");
    }
    const std::string origin = request.get_header_value("Origin");
    const bool        same   = origin.empty() || origin == "http://" + host || origin == "https://" + host;
    if (!same && !contains(service.options.origins, origin) && !contains(service.options.origins, "*")) {
        throw RequestError(403, "origin '" + origin.substr(0, 80) + "' is not allowed (see --cors-origin)", "",
                           "origin");
    }
    if (request.has_header("Content-Encoding") && request.get_header_value("Content-Encoding") != "identity") {
        throw RequestError(415, "content encoding is not supported, send the body uncompressed", "",
                           "content_encoding");
    }
    if (!service.keys.empty() && !is_public_path(request.path) && request.method != "OPTIONS" &&
        !service.keys.accepts(api_key_of(request))) {
        throw RequestError(401, "the API key is missing or wrong", "", "invalid_api_key");
    }
}

// Headers allowed in cross-origin requests: those the browser asks for, because client libraries add many of their own.
std::string allowed_headers(const httplib::Request & request) {
    const std::string asked = request.get_header_value("Access-Control-Request-Headers");
    const bool        plain = std::all_of(asked.begin(), asked.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '-' || c == '_' || c == ',' || c == ' ';
    });
    return asked.empty() || !plain ? "Authorization, Content-Type, x-api-key" : asked;
}

void allow_origin(const Service & service, const httplib::Request & request, httplib::Response & response) {
    const std::string origin = request.get_header_value("Origin");
    if (origin.empty() || (!contains(service.options.origins, origin) && !contains(service.options.origins, "*"))) {
        return;
    }
    response.set_header("Access-Control-Allow-Origin", origin);
    response.set_header("Vary", "Origin");
    response.set_header("Access-Control-Allow-Headers", allowed_headers(request));
    response.set_header("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
}

const char * status_message(int status) {
    switch (status) {
        case 404: return "not found";
        case 405: return "method not allowed";
        case 413: return "request body too large";
        case 414: return "URI too long";
        default: return "bad request";
    }
}

// Yields the events of a job until all its answers are complete.
class JobStream {
  public:
    JobStream(Service & service, std::shared_ptr<Job> job) : service_(service), job_(std::move(job)) {
        service_.n_replying++;
    }
    ~JobStream() {
        job_->cancel(); // no effect when it is complete
        service_.n_replying--;
    }
    JobStream(const JobStream &)             = delete;
    JobStream & operator=(const JobStream &) = delete;

    // Empty on a poll timeout. Throws RequestError when the job failed.
    std::optional<JobEvent> next() {
        auto event = job_->wait(kPollInterval);
        if (event) {
            if (const auto * failed = std::get_if<FailedEvent>(&*event)) {
                throw failed->error;
            }
            if (const auto * step = std::get_if<LatentEvent>(&*event)) {
                outcome.steps.push_back(step->step);
            } else if (const auto * done = std::get_if<DoneEvent>(&*event)) {
                outcome.answers.emplace(done->index, *done);
            }
        }
        return event;
    }
    bool complete() const { return outcome.answers.size() == size_t(job_->n_answers); }

    JobOutcome outcome;

  private:
    Service &            service_;
    std::shared_ptr<Job> job_;
};

std::string event_text(Reply & reply, const JobEvent & event) {
    return std::visit(
        [&](const auto & one) -> std::string {
            if constexpr (std::is_same_v<std::decay_t<decltype(one)>, FailedEvent>) {
                return reply.failed(one.error);
            } else {
                return reply.on(one);
            }
        },
        event);
}

// Whether the client is gone. `probe` sends bytes that a client ignores.
template <typename Probe> bool client_gone(const Probe & probe) {
    Connection * connection = Connection::current();
    if (connection == nullptr) {
        return false;
    }
    if (connection->probe_is_due()) {
        probe(*connection);
    }
    return connection->peer_gone();
}

// Before the reply begins a 100 Continue probes the connection; clients must skip it (RFC 9110, 15.2). HTTP/1.0 has no
// interim responses; there a lost client is noticed when the reply is sent.
bool client_gone() {
    static constexpr char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    return client_gone([](Connection & connection) {
        if (connection.interim_allowed()) {
            connection.write(text, sizeof text - 1);
        }
    });
}

} // namespace

void send_json(httplib::Response & response, const OrderedJson & body, int status) {
    response.status = status;
    response.set_content(dump_json(body), "application/json");
}

void send_error(httplib::Response & response, const RequestError & error, const OrderedJson & body) {
    if (error.status == 503) {
        response.set_header("Retry-After", "1");
    }
    if (error.status == 401) {
        response.set_header("WWW-Authenticate", "Bearer");
    }
    send_json(response, body, error.status);
}

void send_error(httplib::Response & response, const RequestError & error) {
    send_error(response, error, openai_error(error));
}

Handler guarded(Handler handler, OrderedJson (*form)(const RequestError &)) {
    return [handler = std::move(handler), form](const httplib::Request & request, httplib::Response & response) {
        try {
            handler(request, response);
        } catch (const std::exception & error) {
            const RequestError problem = to_request_error(error);
            send_error(response, problem, form(problem));
        }
    };
}

void install_request_checks(Listener & server, Service & service) {
    using Result = httplib::Server::HandlerResponse;
    server.set_pre_routing_handler([&service](const httplib::Request & request, httplib::Response & response) {
        if (Connection * connection = Connection::current()) {
            connection->allow_interim(request.version == "HTTP/1.1");
        }
        allow_origin(service, request, response);
        try {
            check_origin_and_key(service, request);
        } catch (const RequestError & error) {
            send_error(response, error);
            return Result::Handled;
        }
        if (request.method == "OPTIONS") {
            response.status = 204;
            return Result::Handled;
        }
        return Result::Unhandled;
    });
    server.set_error_handler([](const httplib::Request &, httplib::Response & response) {
        if (response.body.empty()) {
            send_error(response, RequestError(response.status, status_message(response.status)));
        }
    });
    server.set_post_routing_handler([](const httplib::Request & request, httplib::Response & response) {
        if ((response.status >= 400 || !body_is_read(request)) && Connection::current()) {
            // The rest of the body is not read, so the connection cannot be reused.
            response.headers.erase("Keep-Alive");
            response.headers.erase("Connection");
            response.set_header("Connection", "close");
            Connection::current()->close_after_response();
        }
    });
    server.set_logger([&service](const httplib::Request & request, const httplib::Response & response) {
        service.metrics.count_response(response.status);
        log_debug("serve: " + request.method + " " + in_quotes(request.path, 200) + " " +
                  std::to_string(response.status));
    });
}

void serve_job(Service & service, httplib::Response & response, std::shared_ptr<Reply> reply) {
    const std::shared_ptr<Job> job = reply->gen_request().job;
    service.worker.check(*job);
    service.worker.submit(job);
    auto events = std::make_shared<JobStream>(service, job);

    // The first event decides the status, also of a stream.
    std::optional<JobEvent> first;
    while (!first) {
        if (client_gone()) {
            Connection::current()->close_after_response();
            response.status = 499;
            return;
        }
        first = events->next();
    }
    if (!reply->gen_request().stream) {
        while (!events->complete()) {
            events->next();
            if (client_gone()) { // checked at every event: a fast answer never idles
                Connection::current()->close_after_response();
                response.status = 499;
                return;
            }
        }
        return send_json(response, reply->whole(events->outcome));
    }
    response.set_header("Cache-Control", "no-cache");
    response.set_header("X-Accel-Buffering", "no");
    response.set_chunked_content_provider(
        "text/event-stream", [reply, events, first, begun = false](size_t, httplib::DataSink & sink) mutable {
            const auto send = [&](const std::string & text) {
                return text.empty() || (sink.write(text.data(), text.size()) && sink.is_writable());
            };
            try {
                if (!begun) {
                    begun                  = true;
                    const std::string head = reply->started();
                    return send(head + event_text(*reply, *first));
                }
                if (events->complete()) {
                    send(reply->ended(events->outcome));
                    sink.done();
                    return true;
                }
                const auto event = events->next();
                // While idle an SSE comment tests whether the client is still there.
                return event ? send(event_text(*reply, *event)) : !client_gone([&](Connection &) { send(":\n\n"); });
            } catch (const std::exception & error) {
                send(reply->failed(to_request_error(error)));
                sink.done();
                return true;
            }
        });
}

} // namespace penelope
