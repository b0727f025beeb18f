// Response of Anthropic's /v1/messages. Latent steps, if requested, become a thinking block.
#pragma once

#include "serve/reply.h"

namespace penelope {

class MessagesReply : public Reply {
  public:
    using Reply::Reply;

    OrderedJson whole(const JobOutcome & outcome) override;
    std::string started() override;
    std::string on(const LatentEvent & event) override;
    std::string on(const TextEvent & event) override;
    std::string on(const DoneEvent & event) override;
    std::string ended(const JobOutcome & outcome) override;
    std::string failed(const RequestError & error) override;
    OrderedJson error(const RequestError & problem) const override { return anthropic_error(problem); }

  private:
    OrderedJson message() const;
    std::string open(const char * type); // closes the open block first
    std::string open_call(const std::string & name);
    std::string delta(const char * type, const char * field, const std::string & text); // of the open block
    std::string close();
    std::string thought(const std::string & text);

    std::string open_;         // type of the open block
    int         index_   = -1; // of the open block
    size_t      n_calls_ = 0;
};

} // namespace penelope
