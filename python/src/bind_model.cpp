// The loaded model: facts about it, its tokenizer, and prompts as tokens.
#include "bindings.h"

#include "arch/config.h"
#include "sidecar/sidecar.h"
#include "text/tokenizer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace penelope::python {

const PromptWriter & Model::writer() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!writer_) {
        writer_.emplace(*engine_, PromptOptions{});
    }
    return *writer_;
}

namespace {

using Tokens = std::vector<int32_t>;

std::shared_ptr<Model> load(const std::string & base, const std::string & sidecar,
                            const std::vector<std::pair<std::string, float>> & loras, const std::string & device,
                            bool use_mmap, bool ignore_mismatch) {
    LoadOptions options;
    options.base            = base;
    options.sidecar         = sidecar;
    options.device          = device;
    options.use_mmap        = use_mmap;
    options.ignore_mismatch = ignore_mismatch;
    for (const auto & [path, scale] : loras) {
        options.loras.push_back({ path, scale });
    }
    return std::make_shared<Model>(Engine::load(options));
}

nb::dict info(const Model & model) {
    const Engine &        engine  = *model.engine();
    const ModelConfig &   config  = engine.config();
    const SidecarConfig * sidecar = engine.sidecar();
    nb::dict              facts;
    facts["name"]         = engine.name();
    facts["type"]         = engine.type_name();
    facts["device"]       = engine.split().name();
    facts["method"]       = sidecar != nullptr ? sidecar->method : "plain";
    facts["n_layers"]     = config.n_layer;
    facts["n_embd"]       = config.n_embd;
    facts["n_vocab"]      = config.n_vocab;
    facts["n_ctx_train"]  = config.n_ctx_train;
    facts["k_default"]    = sidecar != nullptr ? int(sidecar->k_default) : 0;
    facts["k_max"]        = sidecar != nullptr ? int(sidecar->k_max) : 0;
    facts["weight_bytes"] = engine.weight_bytes();
    return facts;
}

// A prompt in tokens, and what the session has to know of it.
struct EncodedPrompt {
    Tokens         tokens;
    ReasoningStart reasoning       = ReasoningStart::none;
    int            n_stable_prefix = 0;
};

EncodedPrompt encode_prompt(const Model & model, const std::string & text, bool raw) {
    if (raw) {
        return { prompt_tokens(*model.engine(), text, PromptForm::raw) };
    }
    const PromptWriter & writer = model.writer();
    return { writer.tokens(text), writer.chat() ? writer.chat()->reasoning_start() : ReasoningStart::none };
}

EncodedPrompt encode_chat(const Model & model, const std::vector<std::pair<std::string, std::string>> & messages) {
    const PromptWriter & writer = model.writer();
    if (!writer.chat()) {
        if (writer.no_template()) {
            throw Error(ErrorKind::unsupported, writer.no_template()->message(), "generate() continues any text");
        }
        if (messages.size() != 1 || messages[0].first != "user") {
            throw Error(ErrorKind::usage,
                        "messages: this model answers one question at a time, " + std::to_string(messages.size()) +
                            " messages were given",
                        "give one message of the role user");
        }
        return { writer.tokens(messages[0].second) };
    }
    std::vector<ChatMessage> conversation;
    for (const auto & [role, content] : messages) {
        conversation.push_back({ role, content });
    }
    const ChatTemplate & chat = *writer.chat();
    EncodedPrompt        prompt{ chat.encode(conversation), chat.reasoning_start() };
    prompt.n_stable_prefix = chat.rewrites_answer(true) ? int(prompt.tokens.size()) - chat.n_generation_prompt() : 0;
    return prompt;
}

Tokens tokenize(const Model & model, const std::string & text, bool add_bos, bool special) {
    return model.engine()->tokenizer().encode(text, { add_bos, special });
}

std::string detokenize(const Model & model, const Tokens & tokens, bool special) {
    return model.engine()->tokenizer().decode(tokens, { special });
}

} // namespace

void bind_model(nb::module_ & m) {
    using release = nb::call_guard<nb::gil_scoped_release>;
    nb::enum_<ReasoningStart>(m, "ReasoningStart")
        .value("none", ReasoningStart::none)
        .value("marked", ReasoningStart::marked)
        .value("inside", ReasoningStart::inside);
    nb::class_<EncodedPrompt>(m, "EncodedPrompt")
        .def_ro("tokens", &EncodedPrompt::tokens)
        .def_ro("reasoning", &EncodedPrompt::reasoning)
        .def_ro("n_stable_prefix", &EncodedPrompt::n_stable_prefix);
    nb::class_<Model>(m, "Model")
        .def("info", &info)
        .def("encode_prompt", &encode_prompt, nb::arg("text"), nb::arg("raw"), release())
        .def("encode_chat", &encode_chat, nb::arg("messages"), release())
        .def("tokenize", &tokenize, nb::arg("text"), nb::arg("add_bos"), nb::arg("special"), release())
        .def("detokenize", &detokenize, nb::arg("tokens"), nb::arg("special"), release());
    m.def("load", &load, nb::arg("base"), nb::arg("sidecar"), nb::arg("loras"), nb::arg("device"), nb::arg("use_mmap"),
          nb::arg("ignore_mismatch"), release());
}

} // namespace penelope::python
