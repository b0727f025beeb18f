// /v1/latent/trace: the latent steps of a prompt, without an answer.
#include "infer/trace_json.h"
#include "serve/http.h"

namespace penelope {

namespace {

class TraceReply : public Reply {
  public:
    using Reply::Reply;

    OrderedJson whole(const JobOutcome & outcome) override {
        OrderedJson steps = OrderedJson::array();
        for (const TraceStep & step : outcome.steps) {
            steps.push_back(trace_json(step));
        }
        const Answer & answer = outcome.answers.begin()->second.answer;
        return { { "id", info_.id },           { "object", "latent.trace" }, { "model", engine().name() },
                 { "method", answer.method },  { "K", answer.n_steps },      { "prompt_tokens", answer.n_prompt },
                 { "steps", std::move(steps) } };
    }
    std::string on(const LatentEvent & event) override { return sse(trace_json(event.step)); }
    std::string on(const TextEvent &) override { return ""; }
    std::string on(const DoneEvent &) override { return ""; }
    std::string ended(const JobOutcome &) override { return "data: [DONE]\n\n"; }
};

void answer_trace(Service & service, const httplib::Request & request, httplib::Response & response) {
    const Json        body = parse_body(request.body);
    const Fields      fields(body);
    GenerationRequest gen_request = read_generation_request(service, fields);
    gen_request.job->n_answers    = 1;
    reject_fields(fields, { "tools" });
    gen_request.job->traces  = true;
    gen_request.job->answers = false;
    if (service.engine().method(gen_request.job->generate.method).max_steps() == 0) {
        throw RequestError(400, "this model has no latent steps");
    }
    if (fields.has("messages")) {
        set_chat_prompt(service, gen_request, read_messages(fields, "messages"));
    } else {
        set_text_prompt(service, gen_request, fields.text("prompt").value_or(""));
    }
    serve_job(service, response,
              std::make_shared<TraceReply>(make_reply_info(service, std::move(gen_request), "trace-")));
}

} // namespace

void add_latent_routes(Listener & server, Service & service) {
    server.Post("/v1/latent/trace", guarded([&service](const httplib::Request & q, httplib::Response & r) {
                    answer_trace(service, q, r);
                }));
}

} // namespace penelope
