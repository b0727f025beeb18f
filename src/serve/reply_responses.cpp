#include "serve/reply_responses.h"

namespace penelope {

OrderedJson ResponsesReply::part(const std::string & text, const TokenLogprobs & scores) const {
    OrderedJson body = { { "type", "output_text" }, { "text", text }, { "annotations", OrderedJson::array() } };
    if (gen_request().job->generate.n_logprobs >= 0) {
        body["logprobs"] = logprobs_list(engine(), scores);
    }
    return body;
}

OrderedJson ResponsesReply::response(const char * status) const {
    const GenerateOptions & g = gen_request().job->generate;
    return { { "id", info_.id },
             { "object", "response" },
             { "created_at", info_.created },
             { "status", status },
             { "error", nullptr },
             { "incomplete_details", nullptr },
             { "instructions", nullptr },
             { "max_output_tokens", g.n_predict >= 0 ? OrderedJson(g.n_predict) : OrderedJson(nullptr) },
             { "model", engine().name() },
             { "output", OrderedJson::array() },
             { "parallel_tool_calls", false },
             { "previous_response_id", nullptr },
             { "temperature", g.sampling.temperature },
             { "tool_choice", "none" },
             { "tools", OrderedJson::array() },
             { "top_p", g.sampling.top_p },
             { "metadata", OrderedJson::object() },
             { "seed", g.sampling.seed } };
}

OrderedJson ResponsesReply::message(const Answer * whole) const {
    const char * status  = whole ? "completed" : "in_progress";
    OrderedJson  content = OrderedJson::array();
    if (whole) {
        content.push_back(part(whole->text, whole->logprobs));
    }
    return { { "type", "message" },
             { "id", message_id_ },
             { "status", status },
             { "role", "assistant" },
             { "content", std::move(content) } };
}

OrderedJson ResponsesReply::reasoning(const std::string & text) const {
    OrderedJson content = OrderedJson::array();
    if (!text.empty()) {
        content.push_back({ { "type", "reasoning_text" }, { "text", text } });
    }
    return { { "type", "reasoning" },
             { "id", reasoning_id_ },
             { "summary", OrderedJson::array() },
             { "content", std::move(content) } };
}

OrderedJson ResponsesReply::whole(const JobOutcome & outcome) {
    const DoneEvent & done = outcome.answers.begin()->second;
    const bool        cut  = done.answer.finish_reason == FinishReason::length;
    OrderedJson       body = response(cut ? "incomplete" : "completed");
    if (cut) {
        body["incomplete_details"] = { { "reason", "max_output_tokens" } };
    }
    if (!outcome.steps.empty()) {
        std::string words;
        for (const TraceStep & step : outcome.steps) {
            words += step.t > 0 ? step_text(step) + "\n" : "";
        }
        body["output"].push_back({ { "type", "reasoning" },
                                   { "id", random_id("rs_") },
                                   { "summary", { { { "type", "summary_text" }, { "text", words } } } } });
    }
    if (!done.answer.reasoning.empty()) {
        body["output"].push_back(reasoning(done.answer.reasoning));
    }
    body["output"].push_back(message(&done.answer));
    const size_t n  = done.answer.tokens.size();
    body["usage"]   = { { "input_tokens", done.answer.n_prompt },
                        { "input_tokens_details", { { "cached_tokens", done.n_cached } } },
                        { "output_tokens", n },
                        { "output_tokens_details", { { "reasoning_tokens", done.answer.n_reasoning } } },
                        { "total_tokens", size_t(done.answer.n_prompt) + n },
                        { "latent_steps", done.answer.n_steps } };
    body["timings"] = timings_json(done);
    if (!gen_request().warnings.empty()) {
        body["warnings"] = gen_request().warnings;
    }
    return body;
}

std::string ResponsesReply::event(const char * type, OrderedJson fields) {
    OrderedJson data = { { "type", type }, { "sequence_number", n_events_++ } };
    data.update(fields);
    return sse(type, data);
}

OrderedJson ResponsesReply::place(const std::string & item) const {
    return { { "item_id", item }, { "output_index", n_items_ }, { "content_index", 0 } };
}

std::string ResponsesReply::started() {
    std::string out = event("response.created", { { "response", response("in_progress") } });
    return out + event("response.in_progress", { { "response", response("in_progress") } });
}

std::string ResponsesReply::reason(const std::string & text) {
    std::string out;
    if (!in_reasoning_) {
        out = event("response.output_item.added", { { "output_index", n_items_ }, { "item", reasoning("") } });
        in_reasoning_ = true;
    }
    reasoning_text_ += text;
    OrderedJson delta = place(reasoning_id_);
    delta["delta"]    = text;
    return out + event("response.reasoning_text.delta", std::move(delta));
}

std::string ResponsesReply::end_reasoning() {
    if (!in_reasoning_) {
        return "";
    }
    OrderedJson whole_text = place(reasoning_id_);
    whole_text["text"]     = reasoning_text_;
    std::string out        = event("response.reasoning_text.done", std::move(whole_text));
    out += event("response.output_item.done", { { "output_index", n_items_ }, { "item", reasoning(reasoning_text_) } });
    in_reasoning_ = false;
    n_items_++;
    return out;
}

std::string ResponsesReply::open_message() {
    if (in_message_) {
        return "";
    }
    std::string out = end_reasoning();
    in_message_     = true;
    out += event("response.output_item.added", { { "output_index", n_items_ }, { "item", message(nullptr) } });
    OrderedJson added = place(message_id_);
    added["part"]     = part("", {});
    return out + event("response.content_part.added", std::move(added));
}

std::string ResponsesReply::on(const TextEvent & text) {
    std::string out = text.reasoning.empty() ? "" : reason(text.reasoning);
    if (!text.logprobs.empty()) {
        pending_logprobs_.push_back(text.logprobs);
    }
    if (text.text.empty()) {
        return out;
    }
    out += open_message();
    OrderedJson delta = place(message_id_);
    delta["delta"]    = text.text;
    delta["logprobs"] = logprobs_list(engine(), pending_logprobs_);
    pending_logprobs_.clear();
    return out + event("response.output_text.delta", std::move(delta));
}

std::string ResponsesReply::on(const DoneEvent & done) {
    const std::string & text       = done.answer.text;
    std::string         out        = open_message();
    OrderedJson         whole_text = place(message_id_), whole_part = place(message_id_);
    whole_text["text"]     = text;
    whole_text["logprobs"] = logprobs_list(engine(), done.answer.logprobs);
    whole_part["part"]     = part(text, done.answer.logprobs);
    out += event("response.output_text.done", std::move(whole_text));
    out += event("response.content_part.done", std::move(whole_part));
    out += event("response.output_item.done", { { "output_index", n_items_ }, { "item", message(&done.answer) } });
    return out;
}

std::string ResponsesReply::ended(const JobOutcome & outcome) {
    JobOutcome answers; // latent steps are not part of the stream
    answers.answers        = outcome.answers;
    const OrderedJson body = whole(answers);
    return event(body["status"] == "completed" ? "response.completed" : "response.incomplete",
                 { { "response", body } });
}

std::string ResponsesReply::failed(const RequestError & problem) {
    OrderedJson body = response("failed");
    body["error"]    = { { "code", "server_error" }, { "message", problem.what() } };
    return event("response.failed", { { "response", body } });
}

} // namespace penelope
