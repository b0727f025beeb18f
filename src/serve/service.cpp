#include "serve/service.h"

#include "latent/sidecar.h"
#include "text/prompt_template.h"
#include "text/wording.h"

#include <ctime>

namespace penelope {

Service::Service(Worker & the_worker, Metrics & the_metrics, const ServiceOptions & the_options)
    : worker(the_worker), metrics(the_metrics), options(the_options), keys(the_options.api_keys),
      start_time(int64_t(std::time(nullptr))) {
    const Wording * wording = engine().wording();
    if (wording == nullptr || wording->prompt_template == chat_prompt_template) {
        try {
            chat.emplace(engine().tokenizer(), options.thinking);
        } catch (const Error & error) {
            if (error.kind == ErrorKind::usage) {
                throw; // it was asked to think, or not to, and cannot
            }
            no_chat = error.message();
        }
    }
}

bool Service::has_visible_steps() const {
    const SidecarConfig * sidecar = engine().sidecar();
    return sidecar != nullptr && (options.insist || sidecar->visible_steps.value_or(false));
}

std::vector<EffortRow> effort_table(const Method & method) {
    const int k = method.default_steps(), k_max = method.max_steps();
    return { { "none", 0 },          { "minimal", std::min(1, k_max) },
             { "low", (k + 1) / 2 }, { "medium", k },
             { "high", k_max },      { "xhigh", k_max },
             { "max", k_max } };
}

} // namespace penelope
