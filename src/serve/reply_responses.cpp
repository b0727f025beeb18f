#include "serve/reply_responses.h"

#include "tools/tool_set.h"

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
             { "parallel_tool_calls", g.tools && g.tools->parallel },
             { "previous_response_id", nullptr },
             { "temperature", g.sampling.temperature },
             { "tool_choice", gen_request().tool_choice },
             { "tools", gen_request().tools },
             { "top_p", g.sampling.top_p },
             { "metadata", OrderedJson::object() },
             { "seed", g.sampling.seed } };
}

OrderedJson ResponsesReply::message(const char * status, const std::string & text, const TokenLogprobs & scores) const {
    OrderedJson content = OrderedJson::array();
    if (std::string(status) != "in_progress") {
        content.push_back(part(text, scores));
    }
    return { { "type", "message" },
             { "id", message_id_ },
             { "status", status },
             { "role", "assistant" },
             { "content", std::move(content) } };
}

OrderedJson ResponsesReply::function_call(size_t call, const char * status, const std::string & name,
                                          const std::string & arguments) {
    return { { "type", "function_call" },     { "id", "fc_" + call_id(0, call) },
             { "call_id", call_id(0, call) }, { "name", name },
             { "arguments", arguments },      { "status", status } };
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
    if (!done.answer.text.empty() || done.answer.tool_calls.empty()) {
        body["output"].push_back(message("completed", done.answer.text, done.answer.logprobs));
    }
    for (size_t i = 0; i < done.answer.tool_calls.size(); i++) {
        const ToolCall & call = done.answer.tool_calls[i];
        body["output"].push_back(
            function_call(i, call.complete ? "completed" : "incomplete", call.name, call.arguments));
    }
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
    return { { "item_id", item }, { "output_index", items_.size() }, { "content_index", 0 } };
}

std::string ResponsesReply::end_item(OrderedJson item) {
    const std::string out = event("response.output_item.done", { { "output_index", items_.size() }, { "item", item } });
    items_.push_back(std::move(item));
    return out;
}

std::string ResponsesReply::started() {
    std::string out = event("response.created", { { "response", response("in_progress") } });
    return out + event("response.in_progress", { { "response", response("in_progress") } });
}

std::string ResponsesReply::reason(const std::string & text) {
    std::string out;
    if (!in_reasoning_) {
        out = event("response.output_item.added", { { "output_index", items_.size() }, { "item", reasoning("") } });
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
    in_reasoning_          = false;
    return out + end_item(reasoning(reasoning_text_));
}

std::string ResponsesReply::open_message() {
    if (in_message_) {
        return "";
    }
    std::string out = end_reasoning();
    out += end_call("incomplete");
    in_message_ = true;
    message_text_.clear();
    message_id_ = random_id("msg_");
    out += event("response.output_item.added",
                 { { "output_index", items_.size() }, { "item", message("in_progress", "", {}) } });
    OrderedJson added = place(message_id_);
    added["part"]     = part("", {});
    return out + event("response.content_part.added", std::move(added));
}

std::string ResponsesReply::say(const std::string & text) {
    std::string out   = open_message();
    OrderedJson delta = place(message_id_);
    delta["delta"]    = text;
    delta["logprobs"] = logprobs_list(engine(), pending_logprobs_);
    pending_logprobs_.clear();
    message_text_ += text;
    return out + event("response.output_text.delta", std::move(delta));
}

std::string ResponsesReply::end_message(const TokenLogprobs & scores) {
    if (!in_message_) {
        return "";
    }
    OrderedJson whole_text = place(message_id_), whole_part = place(message_id_);
    whole_text["text"]     = message_text_;
    whole_text["logprobs"] = logprobs_list(engine(), scores);
    whole_part["part"]     = part(message_text_, scores);
    std::string out        = event("response.output_text.done", std::move(whole_text));
    out += event("response.content_part.done", std::move(whole_part));
    in_message_ = false;
    return out + end_item(message("completed", message_text_, scores));
}

std::string ResponsesReply::begin_call(const std::string & name) {
    std::string out = end_reasoning();
    out += end_message({});
    out += end_call("incomplete");
    in_call_   = true;
    call_name_ = name;
    arguments_.clear();
    return out +
           event("response.output_item.added",
                 { { "output_index", items_.size() }, { "item", function_call(n_calls_++, "in_progress", name, "") } });
}

std::string ResponsesReply::end_call(const char * status) {
    if (!in_call_) {
        return "";
    }
    in_call_               = false;
    const OrderedJson item = function_call(n_calls_ - 1, status, call_name_, arguments_);
    std::string       out  = event("response.function_call_arguments.done", { { "item_id", item["id"] },
                                                                              { "output_index", items_.size() },
                                                                              { "name", call_name_ },
                                                                              { "arguments", arguments_ } });
    return out + end_item(item);
}

std::string ResponsesReply::on(const TextEvent & text) {
    std::string out = text.reasoning.empty() ? "" : reason(text.reasoning);
    if (!text.logprobs.empty()) {
        pending_logprobs_.push_back(text.logprobs);
    }
    for (const ToolEvent & part : text.events) {
        switch (part.kind) {
            case ToolEvent::Kind::text: out += say(part.text); break;
            case ToolEvent::Kind::begin: out += begin_call(part.text); break;
            case ToolEvent::Kind::arguments:
                arguments_ += part.text;
                out +=
                    event("response.function_call_arguments.delta", { { "item_id", "fc_" + call_id(0, n_calls_ - 1) },
                                                                      { "output_index", items_.size() },
                                                                      { "delta", part.text } });
                break;
            case ToolEvent::Kind::end: out += end_call("completed"); break;
        }
    }
    if (text.events.empty() && !text.text.empty()) {
        out += say(text.text);
    }
    return out;
}

std::string ResponsesReply::on(const DoneEvent & done) {
    std::string out = done.answer.tool_calls.empty() ? open_message() : end_reasoning();
    out += end_message(done.answer.tool_calls.empty() ? done.answer.logprobs : TokenLogprobs());
    return out + end_call("incomplete");
}

std::string ResponsesReply::ended(const JobOutcome & outcome) {
    JobOutcome answers; // latent steps are not part of the stream
    answers.answers  = outcome.answers;
    OrderedJson body = whole(answers);
    body["output"]   = items_; // under the ids of the stream
    return event(body["status"] == "completed" ? "response.completed" : "response.incomplete",
                 { { "response", body } });
}

std::string ResponsesReply::failed(const RequestError & problem) {
    OrderedJson body = response("failed");
    body["error"]    = { { "code", "server_error" }, { "message", problem.what() } };
    return event("response.failed", { { "response", body } });
}

} // namespace penelope
