// Response of OpenAI's /v1/responses: items for visible reasoning, the text and each tool call.
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
    OrderedJson message(const char * status, const std::string & text, const TokenLogprobs & scores) const;
    OrderedJson reasoning(const std::string & text) const; // reasoning item
    OrderedJson function_call(size_t call, const char * status, const std::string & name,
                              const std::string & arguments);
    std::string event(const char * type, OrderedJson fields);
    OrderedJson place(const std::string & item) const; // ids of the open content part
    std::string reason(const std::string & text);
    std::string end_reasoning();
    std::string open_message(); // unless open already
    std::string say(const std::string & text);
    std::string end_message(const TokenLogprobs & scores); // if one is open
    std::string begin_call(const std::string & name);
    std::string end_call(const char * status); // if one is open
    std::string end_item(OrderedJson item);

    std::string   message_id_, reasoning_id_;
    std::string   reasoning_text_;                                              // so far
    std::string   message_text_, call_name_, arguments_;                        // of the open item, so far
    OrderedJson   items_        = OrderedJson::array();                         // completed items of a stream
    size_t        n_calls_      = 0;                                            // begun
    bool          in_reasoning_ = false, in_message_ = false, in_call_ = false; // the open item
    int           n_events_ = 0;
    TokenLogprobs pending_logprobs_; // of tokens whose text is still held back
};

} // namespace penelope
