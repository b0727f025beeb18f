#include "serve/reply_openai.h"

#include "infer/trace_json.h"

namespace penelope {

namespace {

const char * finish_name(const Answer & answer) {
    return ends_in_call(answer) ? "tool_calls" : finish_reason_name(answer.finish_reason);
}

} // namespace

OrderedJson OpenAiReply::head(const char * object) const {
    return { { "id", info_.id }, { "object", object }, { "created", info_.created }, { "model", engine().name() } };
}

// offset: characters before the first of these tokens, for the legacy completions format.
OrderedJson OpenAiReply::logprobs_json(const TokenLogprobs & tokens, size_t offset) const {
    if (chat()) {
        return { { "content", logprobs_list(engine(), tokens) } };
    }
    const auto  text_of = [&](int32_t token) { return logprob_text(engine(), token); };
    OrderedJson out     = { { "tokens", OrderedJson::array() },
                            { "token_logprobs", OrderedJson::array() },
                            { "top_logprobs", OrderedJson::array() },
                            { "text_offset", OrderedJson::array() } };
    for (const auto & scores : tokens) {
        OrderedJson best = OrderedJson::object();
        for (size_t i = 1; i < scores.size(); i++) {
            best[text_of(scores[i].token)] = scores[i].logprob;
        }
        out["tokens"].push_back(text_of(scores[0].token));
        out["token_logprobs"].push_back(scores[0].logprob);
        out["top_logprobs"].push_back(std::move(best));
        out["text_offset"].push_back(offset);
        offset += text_of(scores[0].token).size();
    }
    return out;
}

OrderedJson OpenAiReply::whole(const JobOutcome & outcome) {
    OrderedJson body = head(chat() ? "chat.completion" : "text_completion");
    std::string words;
    for (const TraceStep & step : outcome.steps) {
        words += step.t > 0 ? step_text(step) + "\n" : "";
    }
    OrderedJson choices = OrderedJson::array();
    for (const auto & [index, done] : outcome.answers) {
        OrderedJson choice = { { "index", index } };
        if (chat()) {
            choice["message"] = { { "role", "assistant" }, { "content", done.answer.text }, { "refusal", nullptr } };
            if (!done.answer.tool_calls.empty() && done.answer.text.empty()) {
                choice["message"]["content"] = nullptr;
            }
            for (size_t i = 0; i < done.answer.tool_calls.size(); i++) {
                const ToolCall & call = done.answer.tool_calls[i];
                choice["message"]["tool_calls"].push_back(
                    { { "id", call_id(index, i) },
                      { "type", "function" },
                      { "function", { { "name", call.name }, { "arguments", call.arguments } } } });
            }
            if (const std::string reasoning = words + done.answer.reasoning; !reasoning.empty()) {
                choice["message"]["reasoning_content"] = reasoning;
            }
        } else {
            choice["text"] = done.answer.text;
        }
        choice["logprobs"] =
            gen_request().job->generate.n_logprobs >= 0 ? logprobs_json(done.answer.logprobs, 0) : OrderedJson(nullptr);
        choice["finish_reason"] = finish_name(done.answer);
        choice["tokens"]        = done.answer.tokens;
        choices.push_back(std::move(choice));
    }
    const Answer & first = outcome.answers.begin()->second.answer;
    body["choices"]      = std::move(choices);
    body["usage"]        = usage_json(outcome);
    body["timings"]      = timings_json(outcome.answers.begin()->second);
    body["method"]       = first.method;
    body["seed"]         = gen_request().job->generate.sampling.seed;
    if (!outcome.steps.empty()) {
        body["latent_trace"] = OrderedJson::array();
        for (const TraceStep & step : outcome.steps) {
            body["latent_trace"].push_back(trace_json(step));
        }
    }
    if (!gen_request().warnings.empty()) {
        body["warnings"] = gen_request().warnings;
    }
    return body;
}

OrderedJson OpenAiReply::chunk(int index, OrderedJson delta, OrderedJson finish_reason, OrderedJson logprobs) const {
    OrderedJson body   = head(chat() ? "chat.completion.chunk" : "text_completion");
    OrderedJson choice = { { "index", index } };
    if (chat()) {
        choice["delta"] = std::move(delta);
    } else {
        choice["text"] = delta.value("content", "");
    }
    choice["logprobs"]      = std::move(logprobs);
    choice["finish_reason"] = std::move(finish_reason);
    body["choices"]         = OrderedJson::array({ std::move(choice) });
    return body;
}

std::string OpenAiReply::started() {
    std::string out;
    for (int i = 0; chat() && i < gen_request().job->n_answers; i++) {
        OrderedJson first = chunk(i, { { "role", "assistant" }, { "content", "" } }, nullptr, nullptr);
        if (i == 0 && !gen_request().warnings.empty()) {
            first["warnings"] = gen_request().warnings;
        }
        out += sse(first);
    }
    return out;
}

std::string OpenAiReply::on(const LatentEvent & event) {
    OrderedJson delta = OrderedJson::object();
    if (event.step.t > 0 && chat()) {
        delta["reasoning_content"] = step_text(event.step) + "\n";
    }
    OrderedJson body    = chunk(0, std::move(delta), nullptr, nullptr);
    body["latent_step"] = trace_json(event.step);
    return sse(body);
}

// Id and name first, then the pieces of the arguments.
std::string OpenAiReply::call_chunks(const TextEvent & event) {
    std::string out;
    for (const ToolEvent & part : event.events) {
        if (part.kind != ToolEvent::Kind::begin && part.kind != ToolEvent::Kind::arguments) {
            continue;
        }
        const bool  begins = part.kind == ToolEvent::Kind::begin;
        size_t &    n      = n_calls_[event.index];
        OrderedJson call{ { "index", begins ? n : n - 1 } };
        if (begins) {
            call["id"]       = call_id(event.index, n++);
            call["type"]     = "function";
            call["function"] = { { "name", part.text }, { "arguments", "" } };
        } else {
            call["function"] = { { "arguments", part.text } };
        }
        out += sse(chunk(event.index, { { "tool_calls", OrderedJson::array({ call }) } }, nullptr, nullptr));
    }
    return out;
}

std::string OpenAiReply::on(const TextEvent & event) {
    const std::string calls = call_chunks(event);
    if (event.text.empty() && event.reasoning.empty() && event.logprobs.empty()) {
        return calls;
    }
    size_t &    offset   = n_chars_[event.index];
    OrderedJson logprobs = event.logprobs.empty() ? OrderedJson(nullptr) : logprobs_json({ event.logprobs }, offset);
    offset += event.text.size();
    OrderedJson delta = OrderedJson::object();
    if (!event.reasoning.empty()) {
        delta["reasoning_content"] = event.reasoning;
    }
    if (!event.text.empty() || event.reasoning.empty()) {
        delta["content"] = event.text;
    }
    return sse(chunk(event.index, std::move(delta), nullptr, std::move(logprobs))) + calls;
}

std::string OpenAiReply::on(const DoneEvent & event) {
    OrderedJson last = chunk(event.index, OrderedJson::object(), finish_name(event.answer), nullptr);
    last["timings"]  = timings_json(event);
    last["method"]   = event.answer.method;
    last["seed"]     = gen_request().job->generate.sampling.seed;
    last["usage"]    = OrderedJson(nullptr);
    if (!gen_request().include_usage) {
        JobOutcome one;
        one.answers.emplace(event.index, event);
        last["usage"] = usage_json(one);
    }
    return sse(last);
}

std::string OpenAiReply::ended(const JobOutcome & outcome) {
    std::string out;
    if (gen_request().include_usage) {
        OrderedJson body = head(chat() ? "chat.completion.chunk" : "text_completion");
        body["choices"]  = OrderedJson::array();
        body["usage"]    = usage_json(outcome);
        out              = sse(body);
    }
    return out + "data: [DONE]\n\n";
}

} // namespace penelope
