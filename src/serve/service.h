// What the routes share: the worker, the defaults of requests, and the limits that are checked before work begins.
#pragma once

#include "serve/api_keys.h"
#include "serve/worker_pool.h"
#include "text/chat_template.h"

#include <optional>

namespace penelope {

struct ServiceOptions {
    GenerateOptions          defaults;                 // of requests that do not say
    std::string              chat_template   = "auto"; // of conversations: auto, none, a name or a file
    Thinking                 thinking        = Thinking::automatic;
    bool                     ignore_mismatch = false; // visible steps of a LoRA that was not found to write them
    bool                     seed_given      = false; // else requests that sample draw a seed of their own
    std::chrono::seconds     time{ 600 };             // an answer may take
    std::vector<std::string> api_keys;
    std::vector<std::string> origins; // other web pages that may ask; "*": all
    std::vector<std::string> hosts;   // names of this server, in addresses of requests; empty: any
};

struct Service {
    Service(WorkerPool & the_worker, Metrics & the_metrics, const ServiceOptions & the_options);

    const Engine & engine() const { return worker.engine(); }
    bool           has_visible_steps() const; // of the sidecar's LoRA
    std::string    chat_name() const;         // "model", the name of a template, "question" or "none"
    // How conversations are written, for a request that says whether to think aloud and gives the template further variables (an
    // object, null for none). Throws RequestError where the template cannot be told so.
    ChatTemplate chat_for(std::optional<Thinking> thinking, const OrderedJson & variables) const;

    WorkerPool &                worker;
    Metrics &                   metrics;
    ServiceOptions              options;
    ApiKeys                     keys;
    std::optional<ChatTemplate> chat; // none: with a sidecar every question stands alone, or the template is unknown
    std::string                 no_chat_reason;  // why there is no template, when that is an error
    int64_t                     start_time;      // seconds since 1970
    std::atomic<int>            n_replying{ 0 }; // replies on their way
};

// Latent steps by reasoning effort: none, minimal, low, medium, high, xhigh, max.
struct EffortRow {
    const char * effort;
    int          n_steps;
};
std::vector<EffortRow> effort_table(const Method & method);

} // namespace penelope
