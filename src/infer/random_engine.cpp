#include "infer/random_engine.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "infer/engine_impl.h"
#include "latent/method_format.h"
#include "model/load.h"

#include <algorithm>

namespace penelope {

namespace {

struct KnownShape {
    const char * name;
    int          n_layer, n_embd, n_ff, n_head, n_head_kv, head_dim, n_vocab, n_ctx;
    float        rope_base;
    int          start; // of the interval that ends at the last layer
};

const KnownShape kShapes[] = {
    { "llama-3.2-1b", 16, 2048, 8192, 32, 8, 64, 128256, 131072, 500000.0f, 11 },
    { "smollm2-135m", 30, 576, 1536, 9, 3, 64, 49152, 8192, 100000.0f, 21 },
};

ModelConfig config_of(const KnownShape & s) {
    ModelConfig c;
    c.architecture = "llama";
    c.name         = s.name;
    c.n_layer      = s.n_layer;
    c.n_embd       = s.n_embd;
    c.n_ff         = s.n_ff;
    c.n_head       = s.n_head;
    c.n_head_kv    = s.n_head_kv;
    c.head_dim     = s.head_dim;
    c.n_vocab      = s.n_vocab;
    c.n_ctx_train  = s.n_ctx;
    c.rope_base    = s.rope_base;
    return c;
}

ggml_type type_of(const std::string & name) {
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const auto  type   = ggml_type(i);
        std::string known  = ggml_type_name(type) ? ggml_type_name(type) : "";
        std::string wanted = name;
        for (std::string * text : { &known, &wanted }) {
            std::transform(text->begin(), text->end(), text->begin(),
                           [](unsigned char c) { return char(std::tolower(c)); });
        }
        if (!known.empty() && known == wanted && (type == GGML_TYPE_F32 || ggml_get_type_traits(type)->to_float)) {
            return type;
        }
    }
    throw Error(ErrorKind::usage, "--type " + name + ": not known", "f32, f16, q8_0, q4_0, q4_1, q4_k, ...");
}

} // namespace

std::vector<std::string> known_shapes() {
    std::vector<std::string> names;
    for (const KnownShape & shape : kShapes) {
        names.push_back(shape.name);
    }
    return names;
}

std::shared_ptr<const Engine> random_engine(const RandomEngineOptions & options) {
    const Stopwatch watch;
    auto            impl  = std::make_unique<Engine::Impl>(find_device(options.device), options.repack);
    int             start = -1;
    if (!options.base.empty()) {
        const auto base = std::make_shared<const GgufReader>(GgufReader::open(options.base));
        impl->backbone  = load_backbone(base, {}, impl->store, true);
        impl->tokenizer = Tokenizer::from_gguf(*base);
        impl->type_name = most_common_type(*base);
        impl->name      = impl->backbone.config.name;
        start           = impl->backbone.config.n_layer - (impl->backbone.config.n_layer + 2) / 3;
        for (const KnownShape & shape : kShapes) {
            if (shape.n_layer == impl->backbone.config.n_layer && shape.n_embd == impl->backbone.config.n_embd) {
                start = shape.start;
            }
        }
    } else {
        const auto * found = std::find_if(std::begin(kShapes), std::end(kShapes),
                                          [&](const KnownShape & s) { return s.name == options.shape; });
        if (found == std::end(kShapes)) {
            throw Error(ErrorKind::usage, "--shape " + options.shape + ": not known",
                        "known shapes: " + join(known_shapes(), ", "));
        }
        const ggml_type type = type_of(options.type);
        impl->backbone       = random_backbone(config_of(*found), type, 1, impl->store);
        impl->tokenizer      = Tokenizer(byte_level_vocabulary());
        impl->type_name      = options.type;
        impl->name           = found->name;
        start                = found->start;
    }
    const ModelConfig & c = impl->backbone.config;
    SidecarConfig       sidecar;
    sidecar.interval_start = uint32_t(options.start >= 0 ? options.start : start);
    sidecar.interval_end   = uint32_t(options.end >= 0 ? options.end : c.n_layer);
    sidecar.k_max          = uint32_t(options.k_max);
    sidecar.k_default      = uint32_t(std::min(5, options.k_max));
    if (sidecar.interval_start >= sidecar.interval_end || int(sidecar.interval_end) > c.n_layer) {
        throw Error(ErrorKind::usage, "--interval " + std::to_string(sidecar.interval_start) + ":" +
                                          std::to_string(sidecar.interval_end) + ": not inside the " +
                                          std::to_string(c.n_layer) + " layers of " + impl->name);
    }
    impl->sidecar = sidecar;

    if (options.lora_rank > 0) {
        add_random_lora(impl->backbone, options.lora_rank, 2, impl->store);
    }
    ModuleNodes modules;
    for (const std::string & name : method_format_names()) {
        sidecar.method = name;
        modules.merge(random_modules(sidecar, c.n_embd, 3, impl->store));
    }
    impl->store.load();
    impl->add_methods(modules, method_format_names());
    impl->load_ms = watch.elapsed_ms();
    return std::make_shared<const Engine>(std::move(impl));
}

} // namespace penelope
