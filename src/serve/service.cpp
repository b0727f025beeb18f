#include "serve/service.h"

#include "sidecar/sidecar.h"
#include "text/prompt_format.h"
#include "text/prompt_template.h"

#include <ctime>

namespace penelope {

Service::Service(WorkerPool & the_worker, Metrics & the_metrics, const ServiceOptions & the_options)
    : worker(the_worker), metrics(the_metrics), options(the_options), keys(the_options.api_keys),
      start_time(int64_t(std::time(nullptr))) {
    const PromptFormat * prompt_format = engine().prompt_format();
    if (options.chat_template == "none") {
        no_chat_reason = prompt_format ? "" : "messages: no chat template (started with --chat-template none)";
    } else if (options.chat_template != "auto") {
        ChatSettings settings;
        settings.thinking = options.thinking;
        chat.emplace(engine().tokenizer(), named_chat_template(options.chat_template, engine().tokenizer()), settings);
    } else if (prompt_format == nullptr || prompt_format->prompt_template == chat_prompt_template) {
        try {
            chat.emplace(engine().tokenizer(), options.thinking);
        } catch (const Error & error) {
            if (error.kind == ErrorKind::usage) {
                throw; // the requested thinking mode is not supported
            }
            no_chat_reason = error.message();
        }
    }
    if (chat) {
        const Tokenizer & tokenizer = engine().tokenizer();
        const std::string source    = options.chat_template == "auto"
                                          ? tokenizer.chat_template()
                                          : named_chat_template(options.chat_template, tokenizer);
        reads_effort                = source.find("reasoning_effort") != std::string::npos;
        tool_dialect                = find_tool_dialect(*chat);
    }
}

std::string Service::chat_name() const {
    if (chat) {
        return options.chat_template == "auto" ? "model" : options.chat_template;
    }
    return no_chat_reason.empty() ? "question" : "none";
}

ChatTemplate Service::chat_for(std::optional<Thinking> thinking, const OrderedJson & variables) const {
    if (thinking == Thinking::off && !chat->thinks()) {
        thinking.reset();
    }
    if (!thinking && !variables.is_object()) {
        return *chat;
    }
    ChatSettings settings;
    settings.thinking  = thinking.value_or(options.thinking);
    settings.variables = variables;
    try {
        return chat->with(settings);
    } catch (const Error & error) {
        throw RequestError(400, "chat_template_kwargs: " + error.message(), "chat_template_kwargs");
    }
}

bool Service::has_visible_steps() const {
    const SidecarConfig * sidecar = engine().sidecar();
    return sidecar != nullptr && (options.ignore_mismatch || sidecar->visible_steps.value_or(false));
}

std::vector<EffortRow> effort_table(const Method & method) {
    const int k = method.default_steps(), k_max = method.max_steps();
    return { { "none", 0 },          { "minimal", std::min(1, k_max) },
             { "low", (k + 1) / 2 }, { "medium", k },
             { "high", k_max },      { "xhigh", k_max },
             { "max", k_max } };
}

} // namespace penelope
