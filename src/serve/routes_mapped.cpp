// OpenAI's Responses and Anthropic's Messages, both mapped to a chat.
#include "serve/http.h"
#include "serve/reply_messages.h"
#include "serve/reply_responses.h"
#include "serve/tools.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr size_t kMaxStops = 16, kMaxStopLength = 1024;
constexpr size_t kMaxIncluded = 64, kMaxIncludedLength = 256;

void answer_responses(Service & service, const httplib::Request & request, httplib::Response & response) {
    const Json        body = parse_body(request.body);
    const Fields      fields(body);
    GenerationRequest gen_request = read_generation_request(service, fields);
    gen_request.job->n_answers    = 1;
    reject_fields(fields, { "previous_response_id", "background", "conversation" });
    read_token_limit(gen_request, fields, { "max_output_tokens" });
    read_constraint(gen_request, fields, request.body);
    read_tools(service, gen_request, fields, request.body, ToolApi::responses);
    read_logprobs(gen_request, fields);
    const std::vector<std::string> included = fields.texts("include", kMaxIncluded, kMaxIncludedLength);
    if (std::find(included.begin(), included.end(), "message.output_text.logprobs") != included.end()) {
        gen_request.job->generate.n_logprobs = std::max(0, gen_request.job->generate.n_logprobs);
    }
    std::vector<ChatMessage> messages;
    if (const auto instructions = fields.nonempty_text("instructions")) {
        messages.push_back({ "system", *instructions });
    }
    const Json * input = fields.find("input");
    if (input && input->is_string()) {
        messages.push_back({ "user", input->get<std::string>() });
    } else {
        const std::vector<ChatMessage> more = read_messages(fields, "input");
        messages.insert(messages.end(), more.begin(), more.end());
    }
    set_chat_prompt(service, gen_request, messages);
    serve_job(service, response,
              std::make_shared<ResponsesReply>(make_reply_info(service, std::move(gen_request), "resp_")));
}

std::vector<ChatMessage> anthropic_messages(const Fields & fields) {
    std::vector<ChatMessage> messages;
    if (const Json * system = fields.find("system")) {
        // Has the form of a message content: a string or text blocks.
        const Json   wrapped = { { "system", { { { "role", "system" }, { "content", *system } } } } };
        const Fields list(wrapped);
        messages = read_messages(list, "system");
        if (messages.back().content.empty()) {
            messages.clear();
        }
    }
    const std::vector<ChatMessage> more = read_messages(fields, "messages");
    messages.insert(messages.end(), more.begin(), more.end());
    return messages;
}

GenerationRequest read_anthropic(Service & service, const Fields & fields, const std::string & body) {
    GenerationRequest gen_request  = read_generation_request(service, fields);
    gen_request.job->n_answers     = 1;
    gen_request.job->generate.stop = fields.texts("stop_sequences", kMaxStops, kMaxStopLength);
    if (const auto thinking = fields.object("thinking")) {
        if (thinking->has("budget_tokens")) {
            gen_request.warnings.push_back("thinking: token budgets are ignored; use latent_steps");
        }
        if (thinking->text("type").value_or("") == "disabled" && !fields.has("latent_steps")) {
            gen_request.job->generate.n_steps = 0;
            if (service.chat && service.chat->thinks()) {
                gen_request.thinking = Thinking::off;
            }
        }
    }
    read_constraint(gen_request, fields, body);
    read_tools(service, gen_request, fields, body, ToolApi::messages);
    set_chat_prompt(service, gen_request, anthropic_messages(fields));
    return gen_request;
}

void answer_messages(Service & service, const httplib::Request & request, httplib::Response & response) {
    const Json   body = parse_body(request.body);
    const Fields fields(body);
    if (!fields.has("max_tokens")) {
        fields.fail("max_tokens", "missing");
    }
    reject_fields(fields, { "logprobs", "top_logprobs" });
    GenerationRequest gen_request = read_anthropic(service, fields, request.body);
    read_token_limit(gen_request, fields, { "max_tokens" });
    serve_job(service, response,
              std::make_shared<MessagesReply>(make_reply_info(service, std::move(gen_request), "msg_")));
}

void count_tokens(Service & service, const httplib::Request & request, httplib::Response & response) {
    const Json   body = parse_body(request.body);
    const Fields fields(body);
    send_json(response, { { "input_tokens", read_anthropic(service, fields, request.body).job->prompt.size() } });
}

} // namespace

void add_mapped_routes(Listener & server, Service & service) {
    server.Post("/v1/responses", guarded([&service](const httplib::Request & q, httplib::Response & r) {
                    answer_responses(service, q, r);
                }));
    server.Post("/v1/messages", guarded([&service](const httplib::Request & q,
                                                   httplib::Response &      r) { answer_messages(service, q, r); },
                                        anthropic_error));
    server.Post("/v1/messages/count_tokens",
                guarded([&service](const httplib::Request & q, httplib::Response & r) { count_tokens(service, q, r); },
                        anthropic_error));
}

} // namespace penelope
