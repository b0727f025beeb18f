// State shared by all routes: worker pool, request defaults, access settings.
#pragma once

#include "serve/api_keys.h"
#include "serve/worker_pool.h"
#include "tools/tool_format.h"

#include <optional>

namespace penelope {

struct ServiceOptions {
    GenerateOptions          defaults;                 // for fields that a request omits
    std::string              chat_template   = "auto"; // auto, none, a name or a file
    Thinking                 thinking        = Thinking::automatic;
    bool                     ignore_mismatch = false; // allow cot with a LoRA not trained to write steps
    bool                     seed_given      = false; // false: random seed per request
    std::chrono::seconds     time{ 600 };             // limit per answer
    std::vector<std::string> api_keys;
    std::vector<std::string> origins; // allowed CORS origins; "*": all
    std::vector<std::string> hosts;   // allowed Host headers; empty: any
};

struct Service {
    Service(WorkerPool & the_worker, Metrics & the_metrics, const ServiceOptions & the_options);

    const Engine & engine() const { return worker.engine(); }
    bool           has_visible_steps() const; // the sidecar's LoRA writes a visible chain of thought
    std::string    chat_name() const;         // "model", the name of a template, "question" or "none"
    // The chat template for a request with its own thinking mode and chat_template_kwargs (object or null). Throws
    // RequestError when the template does not support them.
    ChatTemplate chat_for(std::optional<Thinking> thinking, const OrderedJson & variables) const;

    WorkerPool &                worker;
    Metrics &                   metrics;
    ServiceOptions              options;
    ApiKeys                     keys;
    std::optional<ChatTemplate> chat;                 // none: the sidecar is single-turn, or there is no template
    std::optional<ToolDialect>  tool_dialect;         // how tools reach the model, where there is a chat template
    std::string                 no_chat_reason;       // error message when there is no template
    int64_t                     start_time;           // seconds since 1970
    std::atomic<int>            n_replying{ 0 };      // replies being sent
    bool                        reads_effort = false; // the template has a variable reasoning_effort
};

// Latent steps by reasoning effort: none, minimal, low, medium, high, xhigh, max.
struct EffortRow {
    const char * effort;
    int          n_steps;
};
std::vector<EffortRow> effort_table(const Method & method);

} // namespace penelope
