#include "infer/engine_impl.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "gguf/finite.h"
#include "gguf/keys.h"
#include "graph/batch_invariance.h"
#include "method/registry.h"
#include "model/load.h"
#include "model/support.h"

#include <filesystem>

namespace penelope {

std::string most_common_type(const GgufReader & file) {
    std::map<ggml_type, size_t> bytes;
    for (const GgufTensor & tensor : file.tensors()) {
        bytes[tensor.type] += tensor.size;
    }
    ggml_type best = GGML_TYPE_F32;
    for (const auto & [type, n] : bytes) {
        if (n > bytes[best]) {
            best = type;
        }
    }
    return to_upper(ggml_type_name(best));
}

namespace {

// Several LoRAs may be mixed, but a question is asked in one way.
void merge_prompt_format(std::optional<PromptFormat> & held, const std::optional<PromptFormat> & more,
                         const std::string & path) {
    if (held && more &&
        (held->prompt_template != more->prompt_template || held->answer_prefix != more->answer_prefix)) {
        throw Error(ErrorKind::usage, "--lora " + path + ": was trained with another prompt template or answer prefix",
                    "use adapters trained on the same kind of text");
    }
    held = held ? held : more;
}

} // namespace

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

std::shared_ptr<const Engine> Engine::load(const LoadOptions & options) {
    const Stopwatch watch;
    const auto      base   = std::make_shared<const GgufReader>(GgufReader::open(options.base, options.base_bytes));
    const bool      bundle = is_bundle(*base);
    const bool      beside = !options.sidecar.empty() || options.sidecar_bytes.data != nullptr; // a file of its own
    if (bundle && beside) {
        throw Error(ErrorKind::usage, "--sidecar: " + options.base + " is a bundle and brings its own",
                    "leave --sidecar away");
    }
    if (!bundle && is_sidecar(*base)) {
        throw Error(ErrorKind::usage, options.base + ": is a sidecar, not a backbone",
                    "give the backbone with -m and this file with --sidecar");
    }
    if (base->find_str(keys::adapter_type).value_or("") == "lora") {
        throw Error(ErrorKind::usage, options.base + ": is a LoRA, not a backbone",
                    "give the backbone with -m and this file with --lora");
    }
    require_supported(*base);
    const auto sidecar =
        bundle    ? base
        : !beside ? nullptr
                  : std::make_shared<const GgufReader>(GgufReader::open(options.sidecar, options.sidecar_bytes));

    const LayerSplit split = options.split.empty() ? LayerSplit::none(find_device(options.device))
                                                   : split_layers(options.split, list_devices(), layer_sizes(*base));
    auto             impl  = std::make_unique<Impl>(split, options.repack, options.use_mmap);
    impl->name             = base->find_str(keys::general_name).value_or("");
    if (impl->name.empty()) {
        impl->name = std::filesystem::path(options.base).stem().string();
    }
    impl->type_name = most_common_type(*base);
    impl->files     = { { options.base, options.base_bytes } };

    HostLora lora;
    if (sidecar) {
        impl->sidecar = read_sidecar_config(*sidecar);
        check_base(*impl->sidecar, read_base_info(*base),
                   options.ignore_mismatch ? WeightMismatch::allowed : WeightMismatch::refused);
        check_sidecar_tensors(*sidecar, *impl->sidecar);
        add_lora(lora, *sidecar, 1.0f, true);
    }
    for (const LoraFile & file : options.loras) {
        const GgufReader adapter = GgufReader::open(file.path, file.bytes);
        add_lora(lora, adapter, file.scale, false);
        merge_prompt_format(impl->prompt_format, find_prompt_format(adapter), file.path);
    }
    if (impl->sidecar) {
        impl->prompt_format = prompt_format_of(*impl->sidecar);
    } else if (!impl->prompt_format) {
        impl->prompt_format = find_prompt_format(*base);
    }
    impl->backbone  = load_backbone(base, lora, impl->stores, bundle);
    impl->tokenizer = Tokenizer::from_gguf(*base);
    if (impl->tokenizer->n_vocab() > impl->backbone.config.n_vocab) {
        throw Error(ErrorKind::format,
                    options.base + ": tokenizer.ggml.tokens has " + std::to_string(impl->tokenizer->n_vocab()) +
                        " entries, expected at most the " + std::to_string(impl->backbone.config.n_vocab) +
                        " rows of token_embd.weight");
    }

    ModuleNodes              modules;
    std::vector<std::string> own;
    if (impl->sidecar) {
        impl->place_modules_at(last_latent_layer(*impl->sidecar, impl->backbone.config.n_layer));
        modules = load_modules(sidecar, *impl->sidecar, impl->backbone.config.n_embd, impl->module_store());
        own     = { impl->sidecar->method };
    }
    impl->stores.load();
    impl->add_methods(modules, own);
    impl->load_ms = watch.elapsed_ms();
    return std::shared_ptr<const Engine>(new Engine(std::move(impl)));
}

void Engine::Impl::add_methods(const ModuleNodes & modules, const std::vector<std::string> & latent) {
    const SidecarConfig none;
    const DeviceInfo &  device = split().devices[size_t(backbone.latent_device_id)];
    tables.emplace(device, false);
    const auto add = [&](const MethodEntry & entry) {
        methods[entry.name] = entry.make({ sidecar ? *sidecar : none, modules, device, *tokenizer, *tables });
    };
    for (const MethodEntry & entry : method_table()) {
        if (entry.is_visible && (sidecar || !entry.needs_sidecar)) {
            add(entry);
        }
    }
    for (const std::string & one : latent) {
        add(get_method(one));
    }
    if (sidecar) {
        default_method = sidecar->method;
    }
}

const DeviceInfo & Engine::device() const {
    return impl_->split().devices.front();
}
const LayerSplit & Engine::split() const {
    return impl_->split();
}
const ModelConfig & Engine::config() const {
    return impl_->backbone.config;
}
const Tokenizer & Engine::tokenizer() const {
    return *impl_->tokenizer;
}
const SidecarConfig * Engine::sidecar() const {
    return impl_->sidecar ? &*impl_->sidecar : nullptr;
}
const PromptFormat * Engine::prompt_format() const {
    return impl_->prompt_format ? &*impl_->prompt_format : nullptr;
}
const Backbone & Engine::backbone() const {
    return impl_->backbone;
}
double Engine::load_ms() const {
    return impl_->load_ms;
}
size_t Engine::weight_bytes() const {
    return impl_->stores.n_bytes();
}
bool Engine::depends_on_batch_position() const {
    return !split().is_split() && split().is_all_cpu() &&
           penelope::depends_on_batch_position(impl_->stores.on_device(0).nodes());
}

std::string Engine::type_name() const {
    return impl_->type_name;
}
std::string Engine::name() const {
    return impl_->name;
}

void Engine::throw_not_finite() const {
    for (const auto & [path, bytes] : impl_->files) {
        const GgufReader file = GgufReader::open(path, bytes);
        for (const GgufTensor & tensor : file.tensors()) {
            if (!all_finite(tensor)) {
                throw Error(ErrorKind::format,
                            in_quotes(path, 1024) + ": tensor " + in_quotes(tensor.name) +
                                " holds a value that is not finite",
                            "the file is damaged, or training diverged; fetch or make it again");
            }
        }
    }
    throw Error(ErrorKind::format, "logits: they are not finite, though all weights are",
                "values overflow on the way; try -ctk f32");
}

const Method & Engine::method(const std::string & name) const {
    const auto found = impl_->methods.find(name.empty() ? impl_->default_method : name);
    if (found != impl_->methods.end()) {
        return *found->second;
    }
    std::string known;
    for (const auto & [key, method] : impl_->methods) {
        known += (known.empty() ? "" : ", ") + key;
    }
    throw Error(ErrorKind::usage, "method " + name + ": not available for this model", "it has: " + known);
}

} // namespace penelope
