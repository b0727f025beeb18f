// /v1/responses as OpenAI describes it, for one answer of text.
#pragma once

#include "serve/reply.h"

namespace penelope {

class ResponsesReply : public Reply {
  public:
    explicit ResponsesReply(ReplyFacts facts) : Reply(std::move(facts)), message_id_(random_id("msg_")) {}

    OrderedJson whole(const Outcome & outcome) override;
    std::string started() override;
    std::string on(const TextEvent & event) override;
    std::string on(const DoneEvent & event) override;
    std::string ended(const Outcome & outcome) override;
    std::string failed(const RequestError & error) override;

  private:
    OrderedJson response(const char * status) const;
    OrderedJson message(const char * status, const std::string & text) const;
    std::string event(const char * type, OrderedJson fields);

    std::string message_id_;
    int         n_events_ = 0;
};

} // namespace penelope
