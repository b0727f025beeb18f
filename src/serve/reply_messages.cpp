#include "serve/reply_messages.h"

namespace penelope {

namespace {

const char * stop_reason(const Answer & answer) {
    return answer.finish_reason == FinishReason::length ? "max_tokens"
           : ends_in_call(answer)                       ? "tool_use"
           : answer.stopped_by.empty()                  ? "end_turn"
                                                        : "stop_sequence";
}

OrderedJson stop_sequence(const Answer & answer) {
    return answer.stopped_by.empty() ? OrderedJson(nullptr) : OrderedJson(answer.stopped_by);
}

} // namespace

OrderedJson MessagesReply::message() const {
    return { { "id", info_.id },
             { "type", "message" },
             { "role", "assistant" },
             { "model", engine().name() },
             { "content", OrderedJson::array() },
             { "stop_reason", nullptr },
             { "stop_sequence", nullptr },
             { "seed", gen_request().job->generate.sampling.seed },
             { "usage", { { "input_tokens", gen_request().job->prompt.size() }, { "output_tokens", 0 } } } };
}

OrderedJson MessagesReply::whole(const JobOutcome & outcome) {
    const DoneEvent & done = outcome.answers.begin()->second;
    OrderedJson       body = message();
    std::string       words;
    for (const TraceStep & step : outcome.steps) {
        words += step.t > 0 ? step_text(step) + "\n" : "";
    }
    words += done.answer.reasoning;
    if (!outcome.steps.empty() || !words.empty()) {
        body["content"].push_back({ { "type", "thinking" }, { "thinking", words }, { "signature", "" } });
    }
    if (!done.answer.text.empty() || done.answer.tool_calls.empty()) {
        body["content"].push_back({ { "type", "text" }, { "text", done.answer.text } });
    }
    for (size_t i = 0; i < done.answer.tool_calls.size(); i++) {
        const ToolCall & call = done.answer.tool_calls[i];
        if (call.complete) { // half of one has no input that could be given
            body["content"].push_back({ { "type", "tool_use" },
                                        { "id", call_id(done.index, i) },
                                        { "name", call.name },
                                        { "input", parse_ordered_json(call.arguments, "arguments") } });
        }
    }
    body["stop_reason"]   = stop_reason(done.answer);
    body["stop_sequence"] = stop_sequence(done.answer);
    body["usage"]         = { { "input_tokens", done.answer.n_prompt },
                              { "output_tokens", done.answer.tokens.size() },
                              { "cache_read_input_tokens", done.n_cached },
                              { "latent_steps", done.answer.n_steps } };
    body["timings"]       = timings_json(done);
    if (!gen_request().warnings.empty()) {
        body["warnings"] = gen_request().warnings;
    }
    return body;
}

std::string MessagesReply::close() {
    if (open_.empty()) {
        return "";
    }
    open_.clear();
    return sse("content_block_stop", { { "type", "content_block_stop" }, { "index", index_ } });
}

std::string MessagesReply::open(const char * type) {
    if (open_ == type) {
        return "";
    }
    const std::string closed = close();
    open_                    = type;
    index_++;
    OrderedJson block = { { "type", type }, { open_ == "text" ? "text" : "thinking", "" } };
    if (open_ == "thinking") {
        block["signature"] = "";
    }
    return closed + sse("content_block_start",
                        { { "type", "content_block_start" }, { "index", index_ }, { "content_block", block } });
}

std::string MessagesReply::open_call(const std::string & name) {
    std::string out = close();
    open_           = "tool_use";
    index_++;
    const OrderedJson block = {
        { "type", "tool_use" }, { "id", call_id(0, n_calls_++) }, { "name", name }, { "input", OrderedJson::object() }
    };
    return out + sse("content_block_start",
                     { { "type", "content_block_start" }, { "index", index_ }, { "content_block", block } });
}

std::string MessagesReply::delta(const char * type, const char * field, const std::string & text) {
    return sse(
        "content_block_delta",
        { { "type", "content_block_delta" }, { "index", index_ }, { "delta", { { "type", type }, { field, text } } } });
}

std::string MessagesReply::started() {
    return sse("message_start", { { "type", "message_start" }, { "message", message() } });
}

std::string MessagesReply::on(const LatentEvent & event) {
    if (event.step.t == 0) {
        return "";
    }
    return thought(step_text(event.step) + "\n");
}

std::string MessagesReply::thought(const std::string & text) {
    const std::string opened = open("thinking");
    return opened + delta("thinking_delta", "thinking", text);
}

std::string MessagesReply::on(const TextEvent & event) {
    std::string out = event.reasoning.empty() ? "" : thought(event.reasoning);
    const auto  say = [&](const std::string & text) {
        out += open("text");
        out += delta("text_delta", "text", text);
    };
    for (const ToolEvent & part : event.events) {
        switch (part.kind) {
            case ToolEvent::Kind::text: say(part.text); break;
            case ToolEvent::Kind::begin: out += open_call(part.text); break;
            case ToolEvent::Kind::arguments: out += delta("input_json_delta", "partial_json", part.text); break;
            case ToolEvent::Kind::end: out += close(); break;
        }
    }
    if (event.events.empty() && !event.text.empty()) {
        say(event.text);
    }
    return out;
}

std::string MessagesReply::on(const DoneEvent & event) {
    std::string ends = event.answer.tool_calls.empty() ? open("text") : "";
    ends += close();
    return ends +
           sse("message_delta",
               { { "type", "message_delta" },
                 { "delta",
                   { { "stop_reason", stop_reason(event.answer) }, { "stop_sequence", stop_sequence(event.answer) } } },
                 { "usage",
                   { { "input_tokens", event.answer.n_prompt },
                     { "output_tokens", event.answer.tokens.size() },
                     { "cache_read_input_tokens", event.n_cached } } } });
}

std::string MessagesReply::ended(const JobOutcome &) {
    return sse("message_stop", { { "type", "message_stop" } });
}

std::string MessagesReply::failed(const RequestError & problem) {
    return sse("error", error(problem));
}

} // namespace penelope
