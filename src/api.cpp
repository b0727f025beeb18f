// The C API of penelope.h over Engine and Session. Every function that can fail runs inside guarded(), which turns
// whatever is thrown into a status and the error text of this thread.
#include "arch/config.h"
#include "base/error.h"
#include "graph/device.h"
#include "infer/prompt.h"
#include "infer/session.h"
#include "penelope.h"
#include "sidecar/sidecar.h"

#include <new>
#include <string>

struct penelope_model {
    std::shared_ptr<const penelope::Engine> engine;
    std::string                             name, type, device, method; // what penelope_model_info points to
};

struct penelope_session {
    std::unique_ptr<penelope::Session> session;
    penelope::Answer                   answer; // what penelope_answer points to
};

namespace {

struct LastError {
    std::string message, hint;
};

LastError & last_error() {
    thread_local LastError error;
    return error;
}

penelope_status status_of(penelope::ErrorKind kind) {
    switch (kind) {
        case penelope::ErrorKind::usage: return PENELOPE_ERROR_USAGE;
        case penelope::ErrorKind::not_found: return PENELOPE_ERROR_NOT_FOUND;
        case penelope::ErrorKind::format: return PENELOPE_ERROR_FORMAT;
        case penelope::ErrorKind::unsupported: return PENELOPE_ERROR_UNSUPPORTED;
        case penelope::ErrorKind::memory: return PENELOPE_ERROR_MEMORY;
        case penelope::ErrorKind::device: return PENELOPE_ERROR_DEVICE;
        case penelope::ErrorKind::io: return PENELOPE_ERROR_IO;
        case penelope::ErrorKind::cancelled: return PENELOPE_ERROR_CANCELLED;
    }
    return PENELOPE_ERROR_INTERNAL;
}

penelope_status fail(penelope_status status, const char * message, const char * hint) noexcept {
    try {
        last_error() = { message, hint };
    } catch (...) {
        last_error().message.clear(); // not even memory for the text
    }
    return status;
}

template <typename Function> penelope_status guarded(Function && function) noexcept {
    try {
        function();
        return PENELOPE_OK;
    } catch (const penelope::Error & error) {
        return fail(status_of(error.kind), error.what(), error.hint.c_str());
    } catch (const std::bad_alloc &) {
        return fail(PENELOPE_ERROR_MEMORY, "out of memory: an allocation failed",
                    "use a smaller context, batch or model");
    } catch (const std::exception & error) {
        return fail(PENELOPE_ERROR_INTERNAL, error.what(), "");
    } catch (...) {
        return fail(PENELOPE_ERROR_INTERNAL, "unknown failure", "");
    }
}

void require(bool present, const char * what) {
    if (!present) {
        throw penelope::Error(penelope::ErrorKind::usage, std::string(what) + ": NULL given");
    }
}

std::string text_or(const char * text, const char * fallback) {
    return text != nullptr ? text : fallback;
}

constexpr int32_t kMaxThreads = 1024;

int checked_steps(const penelope_generate_params & params) {
    if (params.n_steps < -1) {
        throw penelope::Error(penelope::ErrorKind::usage,
                              "n_steps: " + std::to_string(params.n_steps) + " is no number of latent steps",
                              "-1 takes the sidecar's default");
    }
    return params.n_steps;
}

int checked_predict(const penelope_generate_params & params) {
    if (params.n_predict < -1) {
        throw penelope::Error(penelope::ErrorKind::usage,
                              "n_predict: " + std::to_string(params.n_predict) + " given, expected -1 or more",
                              "-1 generates until the context is full");
    }
    return params.n_predict;
}

std::vector<int32_t> tokens_of(penelope_session & session, const char * prompt,
                               const penelope_generate_params & params) {
    return penelope::prompt_tokens(session.session->engine(), prompt,
                                   params.raw ? penelope::PromptForm::raw : penelope::PromptForm::templated);
}

ggml_type type_of(penelope_kv_type type) {
    switch (type) {
        case PENELOPE_KV_F16: return GGML_TYPE_F16;
        case PENELOPE_KV_F32: return GGML_TYPE_F32;
        case PENELOPE_KV_Q8_0: return GGML_TYPE_Q8_0;
        case PENELOPE_KV_BF16: return GGML_TYPE_BF16;
    }
    throw penelope::Error(penelope::ErrorKind::usage, "kv_type: not a value of penelope_kv_type");
}

penelope_finish finish_of(penelope::FinishReason reason) {
    switch (reason) {
        case penelope::FinishReason::stop: return PENELOPE_FINISH_STOP;
        case penelope::FinishReason::length: return PENELOPE_FINISH_LENGTH;
        case penelope::FinishReason::cancelled: return PENELOPE_FINISH_CANCELLED;
    }
    return PENELOPE_FINISH_CANCELLED;
}

penelope::ByteView bytes_of(const penelope_buffer & buffer, const char * what) {
    if (buffer.data != nullptr && buffer.size == 0) {
        throw penelope::Error(penelope::ErrorKind::usage,
                              std::string(what) + ".size: 0 given, expected the file's size");
    }
    return { static_cast<const uint8_t *>(buffer.data), buffer.size };
}

const float * data_or_null(const std::vector<float> & values) {
    return values.empty() ? nullptr : values.data();
}

// The rows of a trace step in the form of the API. `scores` owns what `top` of the result points to.
penelope_trace_rows trace_rows(const std::vector<float> & norms, const std::vector<float> & cosines,
                               const std::vector<std::vector<penelope::TokenScore>> & top,
                               const std::vector<float> & states, std::vector<penelope_token_score> & scores) {
    penelope_trace_rows rows{};
    rows.n_rows  = top.size();
    rows.norms   = data_or_null(norms);
    rows.cosines = data_or_null(cosines);
    rows.n_top   = top.empty() ? 0 : top[0].size();
    rows.n_embd  = top.empty() ? 0 : states.size() / top.size();
    rows.states  = data_or_null(states);
    for (const std::vector<penelope::TokenScore> & row : top) {
        for (const penelope::TokenScore & score : row) {
            scores.push_back({ score.text.c_str(), score.token, score.logit });
        }
    }
    rows.top = scores.data();
    return rows;
}

// Shows a step to a callback of the API.
bool show_step(const penelope::TraceStep & made, penelope_trace_callback on_step, void * user_data) {
    std::vector<penelope_token_score> memory_scores, readout_scores, features_scores;
    std::vector<int32_t>              layers;
    std::vector<float>                weights;
    penelope_trace_step               step{};
    step.step    = made.t;
    step.alpha   = made.alpha;
    step.memory  = trace_rows(made.memory_norms, made.memory_cosines, made.memory_top, made.memory, memory_scores);
    step.readout = trace_rows(made.readout_norms, made.readout_cosines, made.readout_top, made.readout, readout_scores);
    step.features           = trace_rows({}, {}, made.features_top, made.features, features_scores);
    step.layer_applications = made.layer_applications;
    for (const penelope::LayerAttention & layer : made.attention) {
        layers.push_back(layer.layer);
        weights.insert(weights.end(), layer.weights.begin(), layer.weights.end());
        step.attention.n_heads     = size_t(layer.n_heads);
        step.attention.n_rows      = size_t(layer.n_rows);
        step.attention.n_positions = size_t(layer.n_positions);
    }
    step.attention.n_layers = layers.size();
    step.attention.layers   = layers.empty() ? nullptr : layers.data();
    step.attention.weights  = data_or_null(weights);
    return on_step(&step, user_data);
}

} // namespace

extern "C" {

const char * penelope_error_message(void) {
    return last_error().message.c_str();
}

const char * penelope_error_hint(void) {
    return last_error().hint.c_str();
}

const char * penelope_status_name(penelope_status status) {
    switch (status) {
        case PENELOPE_OK: return "ok";
        case PENELOPE_ERROR_USAGE: return "usage";
        case PENELOPE_ERROR_NOT_FOUND: return "not_found";
        case PENELOPE_ERROR_FORMAT: return "format";
        case PENELOPE_ERROR_UNSUPPORTED: return "unsupported";
        case PENELOPE_ERROR_MEMORY: return "memory";
        case PENELOPE_ERROR_DEVICE: return "device";
        case PENELOPE_ERROR_IO: return "io";
        case PENELOPE_ERROR_CANCELLED: return "cancelled";
        case PENELOPE_ERROR_INTERNAL: return "internal";
    }
    return "unknown";
}

const char * penelope_version(void) {
    return PENELOPE_VERSION;
}

const char * penelope_ggml_version(void) {
    static const std::string text = [] {
        try {
            return penelope::ggml_version_text();
        } catch (...) {
            return std::string();
        }
    }();
    return text.c_str();
}

penelope_model_params penelope_model_default_params(void) {
    penelope_model_params params{};
    params.device = "auto";
    return params;
}

penelope_status penelope_model_load(const penelope_model_params * params, penelope_model ** model) {
    if (model != nullptr) {
        *model = nullptr;
    }
    return guarded([&] {
        require(params != nullptr, "params");
        require(params->base_path != nullptr || params->base.data != nullptr, "params.base_path");
        require(params->loras != nullptr || params->n_loras == 0, "params.loras");
        require(model != nullptr, "model");
        penelope::LoadOptions load;
        load.base_bytes    = bytes_of(params->base, "params.base");
        load.sidecar_bytes = bytes_of(params->sidecar, "params.sidecar");
        load.base          = text_or(params->base_path, "base in memory");
        load.sidecar       = text_or(params->sidecar_path, load.sidecar_bytes.data ? "sidecar in memory" : "");
        load.device        = text_or(params->device, "auto");
        for (size_t i = 0; i < params->n_loras; ++i) {
            const penelope_lora & lora = params->loras[i];
            require(lora.path != nullptr || lora.buffer.data != nullptr, "params.loras[].path");
            load.loras.push_back(
                { text_or(lora.path, "LoRA in memory"), lora.scale, bytes_of(lora.buffer, "params.loras[].buffer") });
        }
        auto loaded    = std::make_unique<penelope_model>();
        loaded->engine = penelope::Engine::load(load);
        loaded->name   = loaded->engine->name();
        loaded->type   = loaded->engine->type_name();
        loaded->device = loaded->engine->split().name();
        loaded->method = loaded->engine->sidecar() != nullptr ? loaded->engine->sidecar()->method : "plain";
        *model         = loaded.release();
    });
}

void penelope_model_free(penelope_model * model) {
    std::unique_ptr<penelope_model> owner(model);
}

penelope_status penelope_model_get_info(const penelope_model * model, penelope_model_info * info) {
    return guarded([&] {
        require(model != nullptr, "model");
        require(info != nullptr, "info");
        const penelope::ModelConfig &   config  = model->engine->config();
        const penelope::SidecarConfig * sidecar = model->engine->sidecar();

        *info           = {};
        info->name      = model->name.c_str();
        info->type      = model->type.c_str();
        info->device    = model->device.c_str();
        info->method    = model->method.c_str();
        info->n_layers  = config.n_layer;
        info->n_embd    = config.n_embd;
        info->n_vocab   = config.n_vocab;
        info->n_ctx_max = config.n_ctx_train;
        info->k_default = sidecar != nullptr ? static_cast<int32_t>(sidecar->k_default) : 0;
        info->k_max     = sidecar != nullptr ? static_cast<int32_t>(sidecar->k_max) : 0;
    });
}

penelope_session_params penelope_session_default_params(void) {
    return {};
}

penelope_status penelope_session_new(const penelope_model * model, const penelope_session_params * params,
                                     penelope_session ** session) {
    if (session != nullptr) {
        *session = nullptr;
    }
    return guarded([&] {
        require(model != nullptr, "model");
        require(session != nullptr, "session");
        const penelope_session_params given = params != nullptr ? *params : penelope_session_default_params();
        if (given.n_ctx < 0 || given.n_threads < 0) {
            throw penelope::Error(penelope::ErrorKind::usage, "n_ctx and n_threads: must not be negative");
        }
        if (given.n_threads > kMaxThreads) {
            throw penelope::Error(penelope::ErrorKind::usage, "n_threads: " + std::to_string(given.n_threads) +
                                                                  " is more than " + std::to_string(kMaxThreads));
        }
        penelope::SessionOptions options;
        options.n_ctx     = given.n_ctx;
        options.n_threads = given.n_threads;
        options.kv_type   = type_of(given.kv_type);
        auto created      = std::make_unique<penelope_session>();
        created->session  = std::make_unique<penelope::Session>(model->engine, options);
        *session          = created.release();
    });
}

void penelope_session_free(penelope_session * session) {
    std::unique_ptr<penelope_session> owner(session);
}

penelope_status penelope_session_clear(penelope_session * session) {
    return guarded([&] {
        require(session != nullptr, "session");
        session->session->clear();
    });
}

void penelope_session_cancel(penelope_session * session) {
    if (session != nullptr) {
        session->session->cancel();
    }
}

void penelope_session_reset_cancel(penelope_session * session) {
    if (session != nullptr) {
        session->session->reset_cancel();
    }
}

penelope_generate_params penelope_generate_default_params(void) {
    const penelope::SamplingOptions sampling;

    penelope_generate_params params{};
    params.n_steps     = -1;
    params.n_predict   = -1;
    params.temperature = sampling.temperature;
    params.top_k       = sampling.top_k;
    params.top_p       = sampling.top_p;
    params.min_p       = sampling.min_p;
    params.seed        = sampling.seed;
    return params;
}

penelope_status penelope_generate(penelope_session * session, const char * prompt,
                                  const penelope_generate_params * params, penelope_token_callback on_token,
                                  void * user_data, penelope_answer * answer) {
    if (answer != nullptr) {
        *answer = {};
    }
    return guarded([&] {
        require(session != nullptr, "session");
        require(prompt != nullptr, "prompt");
        const penelope_generate_params given = params != nullptr ? *params : penelope_generate_default_params();

        penelope::GenerateOptions options;
        options.method               = text_or(given.method, "");
        options.n_steps              = checked_steps(given);
        options.n_predict            = checked_predict(given);
        options.sampling.temperature = given.temperature;
        options.sampling.top_k       = given.top_k;
        options.sampling.top_p       = given.top_p;
        options.sampling.min_p       = given.min_p;
        options.sampling.seed        = given.seed;
        options.attention            = given.attention;
        penelope::check_sampling(options.sampling);

        penelope::TokenCallback callback;
        if (on_token != nullptr) {
            callback = [&](std::string_view text, int32_t token) {
                return on_token(std::string(text).c_str(), text.size(), token, user_data);
            };
        }
        penelope::StepCallback look;
        if (given.on_step != nullptr) {
            look = [&](const penelope::TraceStep & step) { return show_step(step, given.on_step, user_data); };
        }
        session->answer = session->session->generate(tokens_of(*session, prompt, given), options, callback, look);
        if (answer == nullptr) {
            return;
        }
        const penelope::Answer & made = session->answer;
        answer->text                  = made.text.c_str();
        answer->text_size             = made.text.size();
        answer->tokens                = made.tokens.data();
        answer->n_tokens              = made.tokens.size();
        answer->n_prompt              = made.n_prompt;
        answer->n_steps               = made.n_steps;
        answer->layer_applications    = made.layer_applications;
        answer->finish                = finish_of(made.finish_reason);
        answer->prompt_ms             = made.timings.prompt_ms;
        answer->decode_ms             = made.timings.decode_ms;
        answer->tokens_per_second     = made.timings.tokens_per_second;
    });
}

penelope_status penelope_trace(penelope_session * session, const char * prompt, const penelope_generate_params * params,
                               penelope_trace_callback on_step, void * user_data) {
    return guarded([&] {
        require(session != nullptr, "session");
        require(prompt != nullptr, "prompt");
        require(on_step != nullptr, "on_step");
        const penelope_generate_params given = params != nullptr ? *params : penelope_generate_default_params();
        session->session->trace(tokens_of(*session, prompt, given), checked_steps(given), given.attention,
                                [&](const penelope::TraceStep & step) { return show_step(step, on_step, user_data); });
    });
}

} // extern "C"
