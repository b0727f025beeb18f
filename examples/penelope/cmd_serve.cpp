// penelope serve: the HTTP server.
#include "commands.h"
#include "demo_model.h"
#include "interrupt.h"
#include "model_setup.h"
#include "output.h"

#include "base/format.h"
#include "base/json.h"
#include "serve/server.h"

#include <arpa/inet.h>
#include <netdb.h>

namespace penelope {

namespace {

// Whether only this machine can reach the address. Names other than localhost may resolve to anything, also names such
// as 127.example.org.
bool is_loopback(const std::string & host) {
    if (host == "localhost") {
        return true;
    }
    addrinfo hints{}, *found = nullptr;
    hints.ai_flags = AI_NUMERICHOST;
    if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) {
        return false;
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo *)> owner(found, freeaddrinfo);
    if (found->ai_family == AF_INET6) {
        return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6 *>(found->ai_addr)->sin6_addr);
    }
    return found->ai_family == AF_INET &&
           ntohl(reinterpret_cast<const sockaddr_in *>(found->ai_addr)->sin_addr.s_addr) >> 24 == 127;
}

ServerOptions server_options(const Options & options) {
    ServerOptions server;
    server.listen.host                 = options.text("host");
    server.listen.port                 = static_cast<int>(options.integer("port"));
    server.listen.cert                 = options.text("cert");
    server.listen.key                  = options.text("key");
    server.listen.n_connections        = static_cast<int>(options.integer("connections"));
    server.listen.limits.request_bytes = static_cast<size_t>(options.integer("max-body")) << 10;
    server.listen.limits.request       = std::chrono::seconds(options.integer("request-timeout"));
    if (server.listen.cert.empty() != server.listen.key.empty()) {
        throw UsageError("--cert, --key: TLS needs both", "give the certificate and its private key as PEM files");
    }

    ServiceOptions & service  = server.service;
    const auto       add_keys = [&](const std::vector<std::string> & keys) {
        service.api_keys.insert(service.api_keys.end(), keys.begin(), keys.end());
    };
    for (const std::string & value : options.list("api-key")) {
        add_keys(parse_keys(value, "--api-key"));
    }
    if (options.given("api-key-file")) {
        add_keys(read_key_file(options.text("api-key-file")));
    }
    if (!is_loopback(server.listen.host) && service.api_keys.empty()) {
        throw UsageError("--host " + server.listen.host + ": listening on a non-loopback address needs an API key",
                         "add --api-key KEY or --api-key-file FILE");
    }
    if (is_loopback(server.listen.host)) {
        service.hosts = { "localhost", "127.0.0.1", "[::1]", server.listen.host };
    }
    service.origins            = options.list("cors-origin");
    service.time               = std::chrono::seconds(options.integer("timeout"));
    service.defaults.sampling  = sampling_options(options);
    service.defaults.n_predict = static_cast<int>(options.integer("predict"));
    if (options.given("latent-steps")) {
        service.defaults.n_steps = static_cast<int>(options.integer("latent-steps"));
    }
    service.chat_template   = options.text("chat-template");
    service.thinking        = thinking_option(options);
    service.seed_given      = options.given("seed");
    service.ignore_mismatch = options.flag("ignore-mismatch");

    server.worker.worker.session             = session_options(options, static_cast<int>(options.integer("slots")));
    server.worker.worker.no_batch_invariance = options.flag("no-batch-invariance");
    server.worker.n_queue                    = static_cast<int>(options.integer("queue"));
    return server;
}

Options with_demo_model(Options options) {
    if (options.given("sidecar")) {
        options.required("model"); // throws: a sidecar needs its backbone
    }
    const DemoModel demo = find_demo_model();
    for (const OptionRow * row : command_options("serve")) {
        const std::string name = row->name;
        if (name == "model" || name == "sidecar") {
            options.set(*row, { name == "model" ? demo.base : demo.sidecar }, OptionSource::flag, "");
        }
    }
    return options;
}

// The first Ctrl-C lets running answers finish, a second one stops them.
void serve_until_interrupted(Server & server, Terminal & terminal) {
    constexpr std::chrono::milliseconds poll_interval(100);
    while (interrupt_count() == 0) {
        std::this_thread::sleep_for(poll_interval);
    }
    server.close();
    terminal.note("finishing running answers; Ctrl-C again stops them");
    while (interrupt_count() < 2 && !server.wait_idle(poll_interval)) {
    }
}

} // namespace

int cmd_serve(const Options & options, Terminal & terminal) {
    const ServerOptions server_setup = server_options(options);
    check_sampling(server_setup.service.defaults.sampling);
    const std::shared_ptr<const Engine> engine =
        load_engine(options.given("model") ? options : with_demo_model(options), terminal);
    check_method_supported(*engine, "", server_setup.service.defaults.n_steps, options.flag("ignore-mismatch"));

    Server                  server(engine, server_setup);
    const InterruptDeferral hold(InterruptDeferral::all_signals);
    server.start();
    if (options.flag("json")) {
        terminal.line(dump_json(OrderedJson{ { "status", "ok" },
                                             { "address", server.address() },
                                             { "model", engine->name() },
                                             { "slots", server.session_options().n_streams },
                                             { "n_ctx", server.session_options().n_ctx } }));
    } else {
        terminal.line(in_quotes(engine->name()) + " at " + server.address());
    }
    serve_until_interrupted(server, terminal);
    server.stop();
    return 0;
}

} // namespace penelope
