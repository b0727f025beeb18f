#include "serve/http.h"
#include "serve/reply_openai.h"
#include "serve/tools.h"

namespace penelope {

namespace {

void answer_chat(Service & service, const httplib::Request & request, httplib::Response & response) {
    const Json        body = parse_body(request.body);
    const Fields      fields(body);
    GenerationRequest gen_request = read_generation_request(service, fields);
    read_constraint(gen_request, fields, request.body);
    read_tools(service, gen_request, fields, request.body, ToolApi::chat);
    read_token_limit(gen_request, fields, { "max_completion_tokens", "max_tokens" });
    read_logprobs(gen_request, fields);
    set_chat_prompt(service, gen_request, read_messages(fields, "messages"));
    serve_job(
        service, response,
        std::make_shared<OpenAiReply>(make_reply_info(service, std::move(gen_request), "chatcmpl-"), OpenAiKind::chat));
}

void answer_text(Service & service, const httplib::Request & request, httplib::Response & response) {
    const Json        body = parse_body(request.body);
    const Fields      fields(body);
    GenerationRequest gen_request = read_generation_request(service, fields);
    reject_fields(fields, { "echo", "suffix", "tools" });
    read_constraint(gen_request, fields, request.body);
    read_token_limit(gen_request, fields, { "max_tokens", "n_predict" });
    if (const auto n = fields.integer("logprobs", 0, kMaxLogprobs)) {
        gen_request.job->generate.n_logprobs = int(*n);
    }
    const std::vector<std::string> prompts = fields.texts("prompt", 1, SIZE_MAX);
    if (prompts.empty()) {
        fields.fail("prompt", "missing");
    }
    set_text_prompt(service, gen_request, prompts[0]);
    serve_job(
        service, response,
        std::make_shared<OpenAiReply>(make_reply_info(service, std::move(gen_request), "cmpl-"), OpenAiKind::text));
}

} // namespace

void add_openai_routes(Listener & server, Service & service) {
    server.Post("/v1/chat/completions",
                guarded([&service](const httplib::Request & q, httplib::Response & r) { answer_chat(service, q, r); }));
    server.Post("/v1/completions",
                guarded([&service](const httplib::Request & q, httplib::Response & r) { answer_text(service, q, r); }));
}

} // namespace penelope
