#include "infer/random_engine.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "infer/engine_impl.h"
#include "model/load.h"
#include "sidecar/method_format.h"

#include <algorithm>

namespace penelope {

namespace {

ggml_type type_of(const std::string & name) {
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const auto        type  = ggml_type(i);
        const std::string known = ggml_type_name(type) ? ggml_type_name(type) : "";
        if (!known.empty() && to_lower(known) == to_lower(name) &&
            (type == GGML_TYPE_F32 || ggml_get_type_traits(type)->to_float)) {
            return type;
        }
    }
    throw Error(ErrorKind::usage, "--type " + name + ": not known", "f32, f16, q8_0, q4_0, q4_1, q4_k, ...");
}

const KnownShape * find_shape(const std::string & name) {
    for (const Architecture * one : architectures()) {
        for (const KnownShape & shape : one->shapes) {
            if (name == shape.name) {
                return &shape;
            }
        }
    }
    return nullptr;
}

} // namespace

std::vector<std::string> known_shapes() {
    std::vector<std::string> names;
    for (const Architecture * one : architectures()) {
        for (const KnownShape & shape : one->shapes) {
            names.push_back(shape.name);
        }
    }
    return names;
}

std::shared_ptr<const Engine> random_engine(const RandomEngineOptions & options) {
    const Stopwatch watch;
    const auto      make = [&](const LayerSizes & sizes) {
        return std::make_unique<Engine::Impl>(options.split.empty()
                                                       ? LayerSplit::none(find_device(options.device))
                                                       : split_layers(options.split, list_devices(), sizes),
                                              options.repack);
    };
    std::unique_ptr<Engine::Impl> impl;
    int                           start = -1;
    if (!options.base.empty()) {
        const auto base = std::make_shared<const GgufReader>(GgufReader::open(options.base));
        impl            = make(layer_sizes(*base));
        impl->backbone  = load_backbone(base, {}, impl->stores, true);
        impl->tokenizer = Tokenizer::from_gguf(*base);
        impl->type_name = most_common_type(*base);
        impl->name      = impl->backbone.config.name;
        start           = impl->backbone.config.n_layer - (impl->backbone.config.n_layer + 2) / 3;
        for (const KnownShape & shape : get_architecture(impl->backbone.config).shapes) {
            if (shape.config.n_layer == impl->backbone.config.n_layer &&
                shape.config.n_embd == impl->backbone.config.n_embd) {
                start = shape.start;
            }
        }
    } else {
        const KnownShape * found = find_shape(options.shape);
        if (!found) {
            throw Error(ErrorKind::usage, "--shape " + options.shape + ": not known",
                        "known shapes: " + join(known_shapes(), ", "));
        }
        const ggml_type type = type_of(options.type);
        impl                 = make(layer_sizes(found->config, type));
        impl->backbone       = random_backbone(found->config, type, 1, impl->stores);
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
    impl->place_modules_at(int(sidecar.interval_end) - 1);

    if (options.lora_rank > 0) {
        add_random_lora(impl->backbone, options.lora_rank, 2, impl->stores);
    }
    ModuleNodes modules;
    for (const std::string & name : method_format_names()) {
        sidecar.method = name;
        modules.merge(random_modules(sidecar, c.n_embd, 3, impl->module_store()));
    }
    impl->stores.load();
    impl->add_methods(modules, method_format_names());
    impl->load_ms = watch.elapsed_ms();
    return std::make_shared<const Engine>(std::move(impl));
}

} // namespace penelope
