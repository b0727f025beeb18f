#include "serve/reply.h"

#include "text/tokenizer.h"

#include <openssl/rand.h>

#include <cmath>
#include <ctime>

namespace penelope {

namespace {

// Three decimals; the clock is not more precise.
double rounded(double value) {
    return std::round(value * 1000.0) / 1000.0;
}

} // namespace

std::string random_id(const char * prefix) {
    unsigned char bytes[12];
    RAND_bytes(bytes, sizeof bytes);
    std::string id = prefix;
    for (unsigned char byte : bytes) {
        id += "0123456789abcdef"[byte >> 4];
        id += "0123456789abcdef"[byte & 15];
    }
    return id;
}

bool ends_in_call(const Answer & answer) {
    return answer.finish_reason == FinishReason::stop && !answer.tool_calls.empty() &&
           answer.tool_calls.back().complete && answer.stopped_by.empty();
}

// Nine letters and digits: the template of Mistral takes no other.
const std::string & Reply::call_id(int answer, size_t call) {
    std::string & id = call_ids_[{ answer, call }];
    if (id.empty()) {
        unsigned char bytes[9];
        RAND_bytes(bytes, sizeof bytes);
        for (unsigned char byte : bytes) {
            id += "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[byte % 62];
        }
    }
    return id;
}

ReplyInfo make_reply_info(const Service & service, GenerationRequest gen_request, const char * id_prefix) {
    return { &service, std::move(gen_request), random_id(id_prefix), int64_t(std::time(nullptr)) };
}

std::string Reply::failed(const RequestError & problem) {
    return sse(error(problem));
}

std::string sse(const OrderedJson & data) {
    return "data: " + dump_json(data) + "\n\n";
}

std::string sse(const std::string & event, const OrderedJson & data) {
    return "event: " + event + "\n" + sse(data);
}

OrderedJson usage_json(const JobOutcome & outcome) {
    int64_t n_prompt = 0, n_cached = 0, n_written = 0, n_steps = 0, n_reasoning = 0;
    for (const auto & [index, done] : outcome.answers) {
        n_prompt = done.answer.n_prompt; // the prompt counts once for all answers
        n_cached = std::max<int64_t>(n_cached, done.n_cached);
        n_written += int64_t(done.answer.tokens.size());
        n_reasoning += done.answer.n_reasoning;
        n_steps = done.answer.n_steps;
    }
    return { { "prompt_tokens", n_prompt },
             { "completion_tokens", n_written },
             { "total_tokens", n_prompt + n_written },
             { "prompt_tokens_details", { { "cached_tokens", n_cached } } },
             { "completion_tokens_details", { { "reasoning_tokens", n_reasoning } } },
             { "latent_steps", n_steps } };
}

OrderedJson timings_json(const DoneEvent & done) {
    const Answer & answer = done.answer;
    return { { "prompt_n", answer.n_prompt },
             { "prompt_ms", rounded(answer.timings.prompt_ms) },
             { "latent_ms", rounded(done.latent_ms) },
             { "predicted_n", answer.tokens.size() },
             { "predicted_ms", rounded(answer.timings.decode_ms) },
             { "predicted_per_second", rounded(answer.timings.tokens_per_second) },
             { "layer_applications", answer.layer_applications } };
}

std::string logprob_text(const Engine & engine, int32_t token) {
    return token < engine.tokenizer().n_vocab() ? engine.tokenizer().decode({ token }, { true }) : std::string();
}

OrderedJson logprobs_list(const Engine & engine, const TokenLogprobs & tokens) {
    const auto scored = [&](const TokenLogprob & score) {
        OrderedJson bytes = OrderedJson::array();
        if (score.token < engine.tokenizer().n_vocab()) {
            for (char c : engine.tokenizer().token_bytes(score.token)) {
                bytes.push_back(int(static_cast<unsigned char>(c)));
            }
        }
        return OrderedJson{ { "token", logprob_text(engine, score.token) },
                            { "logprob", score.logprob },
                            { "bytes", bytes } };
    };
    OrderedJson list = OrderedJson::array();
    for (const auto & scores : tokens) {
        OrderedJson one     = scored(scores[0]);
        one["top_logprobs"] = OrderedJson::array();
        for (size_t i = 1; i < scores.size(); i++) {
            one["top_logprobs"].push_back(scored(scores[i]));
        }
        list.push_back(std::move(one));
    }
    return list;
}

std::string step_text(const TraceStep & step) {
    // The trained meaning of a latent step is the output of the interval at the first memory row. Methods without
    // memory show the readout.
    for (const auto * top : { &step.features_top, &step.memory_top, &step.readout_top }) {
        if (!top->empty() && !top->front().empty()) {
            std::string text = top->front().front().text;
            for (size_t at; (at = text.find('\n')) != std::string::npos;) {
                text.replace(at, 1, "\u21b5"); // one line per step
            }
            return text;
        }
    }
    return "";
}

} // namespace penelope
