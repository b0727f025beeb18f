#include "serve/reply_responses.h"

namespace penelope {

namespace {

OrderedJson part(const std::string & text) {
    return { { "type", "output_text" }, { "text", text }, { "annotations", OrderedJson::array() } };
}

} // namespace

OrderedJson ResponsesReply::response(const char * status) const {
    const GenerateOptions & g = ask().job->generate;
    return { { "id", facts_.id },
             { "object", "response" },
             { "created_at", facts_.created },
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
             { "metadata", OrderedJson::object() } };
}

OrderedJson ResponsesReply::message(const char * status, const std::string & text) const {
    OrderedJson content = OrderedJson::array();
    if (std::string(status) == "completed") {
        content.push_back(part(text));
    }
    return { { "type", "message" },
             { "id", message_id_ },
             { "status", status },
             { "role", "assistant" },
             { "content", std::move(content) } };
}

OrderedJson ResponsesReply::whole(const Outcome & outcome) {
    const DoneEvent & done = outcome.answers.begin()->second;
    const bool        cut  = done.answer.finish_reason == FinishReason::length;
    OrderedJson       body = response(cut ? "incomplete" : "completed");
    if (cut) {
        body["incomplete_details"] = { { "reason", "max_output_tokens" } };
    }
    if (!outcome.steps.empty()) {
        std::string words;
        for (const TraceStep & step : outcome.steps) {
            words += step.t > 0 ? step_word(step) + "\n" : "";
        }
        body["output"].push_back({ { "type", "reasoning" },
                                   { "id", random_id("rs_") },
                                   { "summary", { { { "type", "summary_text" }, { "text", words } } } } });
    }
    body["output"].push_back(message("completed", done.answer.text));
    const size_t n  = done.answer.tokens.size();
    body["usage"]   = { { "input_tokens", done.answer.n_prompt },
                        { "input_tokens_details", { { "cached_tokens", done.n_kept } } },
                        { "output_tokens", n },
                        { "output_tokens_details", { { "reasoning_tokens", 0 } } },
                        { "total_tokens", size_t(done.answer.n_prompt) + n },
                        { "latent_steps", done.answer.n_steps } };
    body["timings"] = timings_json(done);
    if (!ask().warnings.empty()) {
        body["warnings"] = ask().warnings;
    }
    return body;
}

std::string ResponsesReply::event(const char * type, OrderedJson fields) {
    OrderedJson data = { { "type", type }, { "sequence_number", n_events_++ } };
    data.update(fields);
    return sse(type, data);
}

std::string ResponsesReply::started() {
    const OrderedJson place = { { "item_id", message_id_ }, { "output_index", 0 }, { "content_index", 0 } };
    OrderedJson       added = place;
    added["part"]           = part("");
    std::string out         = event("response.created", { { "response", response("in_progress") } });
    out += event("response.in_progress", { { "response", response("in_progress") } });
    out += event("response.output_item.added", { { "output_index", 0 }, { "item", message("in_progress", "") } });
    out += event("response.content_part.added", std::move(added));
    return out;
}

std::string ResponsesReply::on(const TextEvent & text) {
    if (text.text.empty()) {
        return "";
    }
    return event("response.output_text.delta", { { "item_id", message_id_ },
                                                 { "output_index", 0 },
                                                 { "content_index", 0 },
                                                 { "delta", text.text },
                                                 { "logprobs", OrderedJson::array() } });
}

std::string ResponsesReply::on(const DoneEvent & done) {
    const std::string & text       = done.answer.text;
    const OrderedJson   place      = { { "item_id", message_id_ }, { "output_index", 0 }, { "content_index", 0 } };
    OrderedJson         whole_text = place, whole_part = place;
    whole_text["text"]     = text;
    whole_text["logprobs"] = OrderedJson::array();
    whole_part["part"]     = part(text);
    std::string out        = event("response.output_text.done", std::move(whole_text));
    out += event("response.content_part.done", std::move(whole_part));
    out += event("response.output_item.done", { { "output_index", 0 }, { "item", message("completed", text) } });
    return out;
}

std::string ResponsesReply::ended(const Outcome & outcome) {
    Outcome answers; // the stream told of one item, the message
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
