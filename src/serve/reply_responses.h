// Response of OpenAI's /v1/responses with one text answer. Visible reasoning becomes an item before it.
#pragma once

#include "serve/reply.h"

namespace penelope {

class ResponsesReply : public Reply {
  public:
    explicit ResponsesReply(ReplyInfo facts)
        : Reply(std::move(facts)), message_id_(random_id("msg_")), reasoning_id_(random_id("rs_")) {}

    OrderedJson whole(const JobOutcome & outcome) override;
    std::string started() override;
    std::string on(const TextEvent & event) override;
    std::string on(const DoneEvent & event) override;
    std::string ended(const JobOutcome & outcome) override;
    std::string failed(const RequestError & error) override;

  private:
    OrderedJson response(const char * status) const;
    OrderedJson part(const std::string & text, const TokenLogprobs & scores) const;
    OrderedJson message(const Answer * whole) const;       // null: in progress
    OrderedJson reasoning(const std::string & text) const; // reasoning item
    std::string event(const char * type, OrderedJson fields);
    OrderedJson place(const std::string & item) const; // ids of the open content part
    std::string reason(const std::string & text);
    std::string end_reasoning();
    std::string open_message(); // unless open already

    std::string   message_id_, reasoning_id_;
    std::string   reasoning_text_;                            // so far
    int           n_items_      = 0;                          // completed items
    bool          in_reasoning_ = false, in_message_ = false; // the open item
    int           n_events_ = 0;
    TokenLogprobs pending_logprobs_; // of tokens whose text is still held back
};

} // namespace penelope
