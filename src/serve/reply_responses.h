// /v1/responses as OpenAI describes it, for one answer of text; a visible chain of thought is an item before it.
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
    OrderedJson message(const Answer * whole) const;       // null: it is being written
    OrderedJson reasoning(const std::string & text) const; // the item
    std::string event(const char * type, OrderedJson fields);
    OrderedJson place(const std::string & item) const; // of a part of the item that is open
    std::string reason(const std::string & text);
    std::string end_reasoning();
    std::string open_message(); // if it is not open yet

    std::string   message_id_, reasoning_id_;
    std::string   reasoning_text_;                            // so far
    int           n_items_      = 0;                          // that are complete
    bool          in_reasoning_ = false, in_message_ = false; // which item is open
    int           n_events_ = 0;
    TokenLogprobs pending_logprobs_; // of tokens whose text has not come
};

} // namespace penelope
