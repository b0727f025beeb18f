// Formats the events of a job as a response: one subclass per API. serve_job() drives it.
#pragma once

#include "serve/generation_request.h"

#include <map>

namespace penelope {

using TokenLogprobs = std::vector<std::vector<TokenLogprob>>; // per token: itself, then the top ones

// All results of a job.
struct JobOutcome {
    std::vector<TraceStep>   steps;
    std::map<int, DoneEvent> answers; // by index
};

// Common to all replies.
struct ReplyInfo {
    const Service *   service;
    GenerationRequest gen_request;
    std::string       id;
    int64_t           created;
};

class Reply {
  public:
    explicit Reply(ReplyInfo facts) : info_(std::move(facts)) {}
    virtual ~Reply() = default;

    const GenerationRequest & gen_request() const { return info_.gen_request; }

    virtual OrderedJson whole(const JobOutcome & outcome) = 0;

    // Chunks of an event stream; "" sends nothing.
    virtual std::string started() { return ""; }
    virtual std::string on(const LatentEvent & /*event*/) { return ""; }
    virtual std::string on(const TextEvent & event)       = 0;
    virtual std::string on(const DoneEvent & event)       = 0;
    virtual std::string ended(const JobOutcome & outcome) = 0;
    virtual std::string failed(const RequestError & error);

    virtual OrderedJson error(const RequestError & error) const { return openai_error(error); }

  protected:
    const Engine & engine() const { return info_.service->engine(); }
    // The id of a call of an answer, made when it is first asked for.
    const std::string & call_id(int answer, size_t call);

    ReplyInfo info_;

  private:
    std::map<std::pair<int, size_t>, std::string> call_ids_;
};

ReplyInfo make_reply_info(const Service & service, GenerationRequest gen_request, const char * id_prefix);

// Helpers shared by the replies.
std::string sse(const OrderedJson & data);
std::string sse(const std::string & event, const OrderedJson & data);
OrderedJson usage_json(const JobOutcome & outcome);
OrderedJson timings_json(const DoneEvent & done);
// [{"token", "logprob", "bytes", "top_logprobs": [...]}], the form of OpenAI Chat Completions and Responses.
OrderedJson logprobs_list(const Engine & engine, const TokenLogprobs & tokens);
std::string logprob_text(const Engine & engine, int32_t token); // control tokens by their name
std::string step_text(const TraceStep & step);                  // nearest token of the latent state
std::string random_id(const char * prefix);
bool        ends_in_call(const Answer & answer); // it stopped to have functions called

} // namespace penelope
