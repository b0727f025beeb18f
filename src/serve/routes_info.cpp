// /health, /props, /metrics and /v1/models.
#include "arch/config.h"
#include "serve/http.h"
#include "sidecar/sidecar.h"

namespace penelope {

namespace {

OrderedJson model_json(const Service & service) {
    const Engine & engine = service.engine();
    const Method & own    = engine.method("");
    return { { "id", engine.name() },
             { "object", "model" },
             { "created", service.start_time },
             { "owned_by", "penelope" },
             { "meta",
               { { "type", engine.type_name() },
                 { "n_ctx", service.worker.options().n_ctx },
                 { "n_ctx_train", engine.config().n_ctx_train },
                 { "n_vocab", engine.config().n_vocab },
                 { "n_embd", engine.config().n_embd },
                 { "n_layer", engine.config().n_layer },
                 { "method", own.name() },
                 { "k_default", own.default_steps() },
                 { "k_max", own.max_steps() } } } };
}

OrderedJson props_json(const Service & service) {
    const Engine &          engine  = service.engine();
    const Method &          own     = engine.method("");
    const SamplingOptions & s       = service.options.defaults.sampling;
    OrderedJson             efforts = OrderedJson::object();
    for (const EffortRow & row : effort_table(own)) {
        efforts[row.effort] = row.n_steps;
    }
    return { { "model", model_json(service) },
             { "device", engine.split().name() },
             { "total_slots", service.worker.options().n_streams },
             { "queue", service.worker.n_queue() },
             { "chat_template", service.chat_name() },
             { "visible_steps", service.has_visible_steps() },
             { "task", engine.sidecar() ? engine.sidecar()->task : "" },
             { "latent_steps", { { "default", own.default_steps() }, { "max", own.max_steps() } } },
             { "reasoning_effort", std::move(efforts) },
             { "default_generation_settings",
               { { "temperature", s.temperature },
                 { "top_k", s.top_k },
                 { "top_p", s.top_p },
                 { "min_p", s.min_p },
                 { "repeat_penalty", s.repeat_penalty },
                 { "presence_penalty", s.presence_penalty },
                 { "frequency_penalty", s.frequency_penalty },
                 { "n_predict", service.options.defaults.n_predict } } },
             { "build", PENELOPE_VERSION } };
}

} // namespace

void add_info_routes(Listener & server, Service & service) {
    const Handler health = [](const httplib::Request &, httplib::Response & response) {
        send_json(response, { { "status", "ok" } });
    };
    server.Get("/health", health);
    server.Get("/v1/health", health);
    server.Get("/props", guarded([&service](const httplib::Request &, httplib::Response & response) {
                   send_json(response, props_json(service));
               }));
    server.Get("/metrics", guarded([&service](const httplib::Request &, httplib::Response & response) {
                   response.set_content(service.metrics.text(), "text/plain; version=0.0.4");
               }));
    server.Get("/v1/models", guarded([&service](const httplib::Request &, httplib::Response & response) {
                   send_json(response, { { "object", "list" }, { "data", { model_json(service) } } });
               }));
}

} // namespace penelope
