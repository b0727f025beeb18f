// Connects cpp-httplib to the service: access checks, error responses, and sending the reply of a job.
#pragma once

#include "serve/listener.h"
#include "serve/reply.h"

namespace penelope {

using Handler = std::function<void(const httplib::Request &, httplib::Response &)>;

// Checks API keys, Host and Origin, reports unknown paths and exceptions as JSON, counts every response.
void install_request_checks(Listener & server, Service & service);

void send_json(httplib::Response & response, const OrderedJson & body, int status = 200);
void send_error(httplib::Response & response, const RequestError & error, const OrderedJson & body);
void send_error(httplib::Response & response, const RequestError & error); // OpenAI body

// Submits the job and sends its reply, whole or as an event stream. The job is cancelled when the client disconnects.
void serve_job(Service & service, httplib::Response & response, std::shared_ptr<Reply> reply);

// Wraps a handler: exceptions become responses with a body made by `form`.
Handler guarded(Handler handler, OrderedJson (*form)(const RequestError &) = openai_error);

// Routes, one file per group.
void add_info_routes(Listener & server, Service & service);   // /health /props /metrics /v1/models
void add_openai_routes(Listener & server, Service & service); // /v1/chat/completions /v1/completions
void add_mapped_routes(Listener & server, Service & service); // /v1/responses /v1/messages
void add_latent_routes(Listener & server, Service & service); // /v1/latent/trace
void add_page(Listener & server);                             // /

} // namespace penelope
