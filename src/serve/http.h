// Between cpp-httplib and the service: who may ask, how errors are written, and how a job's reply reaches its client.
#pragma once

#include "serve/listener.h"
#include "serve/reply.h"

namespace penelope {

using Handler = std::function<void(const httplib::Request &, httplib::Response &)>;

// Keys, hosts, origins, unknown paths and exceptions; counts every response.
void install_request_checks(Listener & server, Service & service);

void send_json(httplib::Response & response, const OrderedJson & body, int status = 200);
void send_error(httplib::Response & response, const RequestError & error, const OrderedJson & body);
void send_error(httplib::Response & response, const RequestError & error); // in OpenAI's form

// Submits the job and answers with its reply, whole or as an event stream. A client that goes away ends the job.
void serve_job(Service & service, httplib::Response & response, std::shared_ptr<Reply> reply);

// A handler whose errors are answered in this form.
Handler guarded(Handler handler, OrderedJson (*form)(const RequestError &) = openai_error);

// The groups of routes, a file each.
void add_info_routes(Listener & server, Service & service);   // /health /props /metrics /v1/models
void add_openai_routes(Listener & server, Service & service); // /v1/chat/completions /v1/completions
void add_mapped_routes(Listener & server, Service & service); // /v1/responses /v1/messages
void add_latent_routes(Listener & server, Service & service); // /v1/latent/trace
void add_page(Listener & server);                             // /

} // namespace penelope
