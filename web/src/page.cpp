// What the page calls when the model runs in the browser (web/browser.js): a model from bytes, its facts, questions.
// Requests and events are JSON in the form of the service (docs/serving.md), as far as the page uses it.
#include "arch/config.h"
#include "base/error.h"
#include "base/json.h"
#include "infer/session.h"
#include "infer/trace_json.h"
#include "method/method.h"
#include "sidecar/sidecar.h"
#include "text/prompt_format.h"
#include "text/prompt_template.h"
#include "text/tokenizer.h"

#include <emscripten.h>

using namespace penelope;

namespace {

struct PageModel {
    std::shared_ptr<const Engine> engine;
    std::unique_ptr<Session>      session;
    std::string                   props;
};

std::string last_error;

// Hands an event to the page.
EM_JS(void, send_event, (const char * text), { Module["onEvent"](UTF8ToString(text)); });

void send(const OrderedJson & event) {
    send_event(event.dump(-1, ' ', false, OrderedJson::error_handler_t::replace).c_str());
}

OrderedJson props_of(const Engine & engine) {
    const Method & own = engine.method("");
    return { { "model",
               { { "id", engine.name() },
                 { "meta",
                   { { "type", engine.type_name() },
                     { "n_vocab", engine.config().n_vocab },
                     { "n_layer", engine.config().n_layer } } } } },
             { "device", "your browser" },
             { "visible_steps", false }, // those of the backbone alone are better: browser.js asks it
             { "task", engine.sidecar() ? engine.sidecar()->task : "" },
             { "latent_steps", { { "default", own.default_steps() }, { "max", own.max_steps() } } },
             { "default_generation_settings", { { "temperature", 0.0 }, { "n_predict", -1 } } } };
}

// A question is data: as in infer/prompt.h, but for chat templates.
std::vector<int32_t> prompt_of(const Engine & engine, const std::string & question) {
    if (question.empty()) {
        throw Error(ErrorKind::usage, "question: it is empty", "type one");
    }
    EncodeOptions options;
    options.add_bos = true;
    return engine.tokenizer().encode(prompt_text(engine.prompt_format()->prompt_template, question), options);
}

void answer(PageModel & model, const Json & request) {
    GenerateOptions options;
    options.n_steps              = request.value("latent_steps", -1);
    options.n_predict            = request.value("max_tokens", -1);
    options.sampling.temperature = request.value("temperature", 0.0f);
    options.attention            = request.value("latent_attention", false);
    StepCallback on_step;
    if (options.attention || request.value("latent_trace", false)) {
        on_step = [](const TraceStep & step) {
            send({ { "latent_step", trace_json(step) } });
            return true;
        };
    }
    const std::string question = request.at("messages").back().at("content");
    const auto        tokens   = prompt_of(*model.engine, question);
    const auto        on_token = [](std::string_view text, int32_t) {
        send({ { "choices", { { { "delta", { { "content", text } } } } } } });
        return true;
    };
    const Answer made = model.session->generate(tokens, options, on_token, on_step);
    send({ { "choices",
             { { { "delta", OrderedJson::object() }, { "finish_reason", finish_reason_name(made.finish_reason) } } } },
           { "timings",
             { { "layer_applications", made.layer_applications },
               { "prompt_ms", made.timings.prompt_ms },
               { "predicted_ms", made.timings.decode_ms },
               { "predicted_n", made.tokens.size() } } } });
}

// Whether it succeeded; page_error() says why not.
template <typename Function> bool attempt(Function && function) {
    try {
        function();
        return true;
    } catch (const Error & error) {
        last_error = std::string(error.what()) + (error.hint.empty() ? "" : " (" + error.hint + ")");
    } catch (const std::exception & error) {
        last_error = error.what();
    }
    return false;
}

} // namespace

extern "C" {

EMSCRIPTEN_KEEPALIVE const char * page_error() {
    return last_error.c_str();
}

// The bytes of backbone and sidecar (null: none), which stay where they are as long as the model does. Null on failure.
EMSCRIPTEN_KEEPALIVE PageModel * page_load(const uint8_t * base, size_t base_size, const uint8_t * sidecar,
                                           size_t sidecar_size) {
    auto       model = std::make_unique<PageModel>();
    const bool done  = attempt([&] {
        LoadOptions load;
        load.base          = "backbone";
        load.base_bytes    = { base, base_size };
        load.sidecar       = sidecar ? "sidecar" : "";
        load.sidecar_bytes = { sidecar, sidecar_size };
        load.device        = "CPU";
        model->engine      = Engine::load(load);
        SessionOptions options;
        options.n_threads = 1;
        options.kv_type   = GGML_TYPE_F32; // WebAssembly has no arithmetic for F16
        model->session    = std::make_unique<Session>(model->engine, options);
        model->props      = props_of(*model->engine).dump();
    });
    return done ? model.release() : nullptr;
}

EMSCRIPTEN_KEEPALIVE const char * page_props(const PageModel * model) {
    return model->props.c_str();
}

// 0: answered, all events are sent. 1: page_error() says why not.
EMSCRIPTEN_KEEPALIVE int page_ask(PageModel * model, const char * request) {
    return attempt([&] { answer(*model, Json::parse(request)); }) ? 0 : 1;
}

} // extern "C"
