// Responses of OpenAI's /v1/chat/completions and /v1/completions, extended by latent steps, timings and warnings.
#pragma once

#include "serve/reply.h"

namespace penelope {

enum class OpenAiKind { chat, text };

class OpenAiReply : public Reply {
  public:
    OpenAiReply(ReplyInfo facts, OpenAiKind kind) : Reply(std::move(facts)), kind_(kind) {}

    OrderedJson whole(const JobOutcome & outcome) override;
    std::string started() override;
    std::string on(const LatentEvent & event) override;
    std::string on(const TextEvent & event) override;
    std::string on(const DoneEvent & event) override;
    std::string ended(const JobOutcome & outcome) override;

  private:
    OrderedJson head(const char * object) const;
    OrderedJson chunk(int index, OrderedJson delta, OrderedJson finish_reason, OrderedJson logprobs) const;
    OrderedJson logprobs_json(const TokenLogprobs & tokens, size_t offset) const;
    std::string call_chunks(const TextEvent & event);
    bool        chat() const { return kind_ == OpenAiKind::chat; }

    OpenAiKind            kind_;
    std::map<int, size_t> n_chars_; // sent so far, by answer
    std::map<int, size_t> n_calls_; // begun so far, by answer
};

} // namespace penelope
