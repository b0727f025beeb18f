// The inside of an Engine, for the two ways to make one: from files (engine.cpp) and from nothing (random_engine.cpp).
#pragma once

#include "infer/engine.h"
#include "method/method.h"
#include "sidecar/load_modules.h"
#include "text/tokenizer.h"

#include <map>
#include <optional>

namespace penelope {

struct Engine::Impl {
    explicit Impl(const LayerSplit & split, bool repack, bool use_mmap = true) : stores(split, repack, use_mmap) {}

    WeightStores                                   stores;
    std::optional<WeightStore>                     tables;   // made from the modules after they are loaded
    Backbone                                       backbone; // with the adapters
    std::optional<Tokenizer>                       tokenizer;
    std::optional<SidecarConfig>                   sidecar;
    std::optional<PromptFormat>                    prompt_format;
    std::map<std::string, std::unique_ptr<Method>> methods;
    std::string                                    default_method = "plain";
    std::string                                    name, type_name;
    std::vector<std::pair<std::string, ByteView>>  files; // that the weights come from
    double                                         load_ms = 0;

    const LayerSplit & split() const { return stores.split(); }
    // The modules lie where this layer does: the one whose result they read.
    void          place_modules_at(int layer) { backbone.latent_device_id = split().device_of(layer); }
    WeightStore & module_store() { return stores.on_device(backbone.latent_device_id); }

    // The visible methods, and the latent ones by these names, whose modules are loaded.
    void add_methods(const ModuleNodes & modules, const std::vector<std::string> & latent);
};

// The type that holds most bytes, as people write it: "Q4_1".
std::string most_common_type(const GgufReader & file);

} // namespace penelope
