#include "serve/generation_request.h"

#include "base/format.h"
#include "infer/prompt.h"
#include "sidecar/sidecar.h"
#include "tools/tool_set.h"

#include <random>

namespace penelope {

namespace {

constexpr int    kMaxAnswers    = 16;
constexpr size_t kMaxStops      = 16;
constexpr size_t kMaxStopLength = 1024;

void read_sampling(const Service & service, GenerationRequest & gen_request, const Fields & fields) {
    SamplingOptions & s = gen_request.job->generate.sampling;
    s.temperature       = float(fields.number("temperature", 0, 100).value_or(double(s.temperature)));
    s.top_k             = int(fields.integer("top_k", 0, INT32_MAX).value_or(s.top_k));
    s.top_p             = float(fields.number("top_p", 0, 1).value_or(double(s.top_p)));
    s.min_p             = float(fields.number("min_p", 0, 1).value_or(double(s.min_p)));
    s.repeat_penalty    = float(fields.number("repeat_penalty", 0.001, 1000).value_or(double(s.repeat_penalty)));
    s.presence_penalty  = float(fields.number("presence_penalty", -100, 100).value_or(double(s.presence_penalty)));
    s.frequency_penalty = float(fields.number("frequency_penalty", -100, 100).value_or(double(s.frequency_penalty)));
    s.penalty_window    = int(fields.integer("repeat_last_n", -1, INT32_MAX).value_or(s.penalty_window));
    if (s.top_p <= 0) {
        fields.fail("top_p", "expected a number above 0");
    }
    if (const auto seed = fields.integer("seed", INT64_MIN, INT64_MAX)) {
        s.seed = uint64_t(*seed);
    } else if (!service.options.seed_given && s.temperature > 0) {
        std::random_device device;
        s.seed = device();
    }
}

// latent_steps wins over reasoning_effort. `reasoning` is an object in the Responses API, else absent.
void read_latent(const Service & service, GenerationRequest & gen_request, const Fields & fields) {
    GenerateOptions & g   = gen_request.job->generate;
    const bool        cot = fields.boolean("cot").value_or(false);
    if (cot && !service.has_visible_steps()) {
        fields.fail("cot", "this sidecar has no CoT-trained LoRA");
    }
    if (cot) {
        g.method  = "cot";
        g.n_steps = -1; // the server's default K is for latent steps only
    }
    const Method & method = service.engine().method(g.method);
    const auto     reasoning =
        fields.find("reasoning") && fields.find("reasoning")->is_object() ? fields.object("reasoning") : std::nullopt;
    auto steps = fields.integer("latent_steps", 0, INT32_MAX);
    if (!steps && reasoning) {
        steps = reasoning->integer("latent_steps", 0, INT32_MAX);
    }
    if (steps && *steps > method.max_steps()) {
        fields.fail("latent_steps", std::to_string(*steps) + " exceeds the maximum of " + method.name() + ", " +
                                        std::to_string(method.max_steps()));
    }
    auto effort = fields.nonempty_text("reasoning_effort");
    if (!effort && reasoning) {
        effort = reasoning->nonempty_text("effort");
    }
    if (!steps && effort) {
        bool known = false;
        for (const EffortRow & row : effort_table(method)) {
            if (*effort == row.effort) {
                known = true;
                steps = row.n_steps;
            }
        }
        if (!known) {
            fields.fail("reasoning_effort", "expected none, minimal, low, medium, high, xhigh or max");
        }
        const bool aloud = service.chat && service.chat->thinks();
        if (aloud) {
            gen_request.thinking = *effort == "none" ? Thinking::off : Thinking::on;
        }
        if (service.reads_effort) {
            gen_request.template_variables["reasoning_effort"] = *effort;
        }
        if (method.max_steps() == 0 && !cot && !aloud) {
            gen_request.warnings.push_back("reasoning_effort: ignored, this model has no latent steps");
        }
    }
    g.n_steps = steps ? int(*steps) : g.n_steps >= 0 ? g.n_steps : method.default_steps();
    g.method  = method.name();
    if (reasoning && (reasoning->has("max_tokens") || reasoning->has("budget_tokens"))) {
        gen_request.warnings.push_back("reasoning: token budgets are ignored; use latent_steps");
    }
    g.attention             = fields.boolean("latent_attention").value_or(false); // shown with the trace
    gen_request.job->traces = fields.boolean("latent_trace").value_or(false) || g.attention;
    if (gen_request.job->traces && method.max_steps() == 0) {
        gen_request.warnings.push_back("latent_trace: ignored, this model has no latent steps");
        gen_request.job->traces = false;
    }
}

// llama.cpp's fields for visible reasoning (<think>).
void read_thinking(GenerationRequest & gen_request, const Fields & fields) {
    if (const auto wanted = fields.object("chat_template_kwargs")) {
        if (const auto thinks = wanted->boolean("enable_thinking")) {
            gen_request.thinking = *thinks ? Thinking::on : Thinking::off;
        }
        for (const auto & [name, value] : fields.find("chat_template_kwargs")->items()) {
            if (name == "messages" || name == "tools" || name == "add_generation_prompt") {
                fields.fail("chat_template_kwargs", "must not contain " + name);
            }
            if (name != "enable_thinking") {
                gen_request.template_variables[name] = value;
            }
        }
    }
    if (const auto format = fields.nonempty_text("reasoning_format")) {
        if (*format != "none" && *format != "auto" && *format != "deepseek") {
            fields.fail("reasoning_format", "expected auto, deepseek or none");
        }
        gen_request.separate_reasoning = *format != "none";
    }
}

} // namespace

void reject_fields(const Fields & fields, const std::vector<std::string> & names) {
    for (const std::string & name : names) {
        const Json * value = fields.find(name);
        // Json::empty() is true only for lists, objects and null.
        const bool idle = !value || (value->is_number() && value->get<double>() == 0) ||
                          (value->is_boolean() && !value->get<bool>()) ||
                          (value->is_string() && value->get_ref<const std::string &>().empty()) || value->empty();
        if (!idle) {
            fields.fail(name, "not supported");
        }
    }
}

void read_token_limit(GenerationRequest & gen_request, const Fields & fields, const std::vector<std::string> & names) {
    for (const std::string & name : names) {
        if (const auto n = fields.integer(name, -1, INT32_MAX)) {
            gen_request.job->generate.n_predict = int(*n);
            return;
        }
    }
}

void read_logprobs(GenerationRequest & gen_request, const Fields & fields) {
    const int n = int(fields.integer("top_logprobs", 0, kMaxLogprobs).value_or(0));
    if (n > 0 || fields.boolean("logprobs").value_or(false)) {
        gen_request.job->generate.n_logprobs = n;
    }
}

GenerationRequest read_generation_request(const Service & service, const Fields & fields) {
    GenerationRequest gen_request;
    Job &             job = *gen_request.job;
    job.generate          = service.options.defaults;
    job.deadline          = std::chrono::steady_clock::now() + service.options.time;
    reject_fields(fields, { "logit_bias", "functions", "audio" });
    read_sampling(service, gen_request, fields);
    read_latent(service, gen_request, fields);
    read_thinking(gen_request, fields);
    job.generate.stop       = fields.texts("stop", kMaxStops, kMaxStopLength);
    job.generate.ignore_end = fields.boolean("ignore_eos").value_or(false);
    job.n_answers           = int(fields.integer("n", 1, kMaxAnswers).value_or(1));
    gen_request.stream      = fields.boolean("stream").value_or(false);
    if (const auto options = fields.object("stream_options")) {
        gen_request.include_usage = options->boolean("include_usage").value_or(false);
    }
    return gen_request;
}

void set_text_prompt(const Service & service, GenerationRequest & gen_request, const std::string & text) {
    gen_request.job->prompt = prompt_tokens(service.engine(), text, PromptForm::templated, ControlTokens::as_text);
}

namespace {

// Errors raised by the chat template (raise_exception) go to the client.
std::vector<int32_t> encode_messages(const ChatTemplate & chat, const std::vector<ChatMessage> & messages) {
    try {
        return chat.encode(messages);
    } catch (const Error & error) {
        if (error.kind != ErrorKind::unsupported) {
            throw;
        }
        throw RequestError(400, "messages: " + error.message(), "messages");
    }
}

} // namespace

void set_chat_prompt(const Service & service, GenerationRequest & gen_request,
                     const std::vector<ChatMessage> & messages) {
    if (service.chat) {
        ChatTemplate        chat  = service.chat_for(gen_request.thinking, gen_request.template_variables);
        Job &               job   = *gen_request.job;
        const ToolDialect & tools = *service.tool_dialect;
        if (job.generate.tools && !tools.described) {
            OrderedJson list = OrderedJson::array();
            for (const Tool & tool : job.generate.tools->tools) {
                list.push_back(tool.json());
            }
            chat = chat.with_tools(std::move(list), tools.place);
        }
        job.prompt = encode_messages(
            chat,
            messages_with_tools(tools, messages, job.generate.tools ? job.generate.tools->tools : std::vector<Tool>()));
        job.generate.reasoning = gen_request.separate_reasoning ? chat.reasoning_start() : ReasoningStart::none;
        job.generate.n_stable_prefix =
            chat.rewrites_answer(true) ? int(job.prompt.size()) - chat.n_generation_prompt() : 0;
        return;
    }
    if (!service.no_chat_reason.empty()) {
        throw RequestError(400, service.no_chat_reason + " (use /v1/completions)", "messages");
    }
    if (messages.back().role != "user") {
        throw RequestError(400, "messages: the last message must have role user", "messages");
    }
    if (messages.size() > 1) {
        gen_request.warnings.push_back("messages: this model is single-turn; only the last message is used");
    }
    set_text_prompt(service, gen_request, messages.back().content);
}

} // namespace penelope
