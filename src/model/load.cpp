#include "model/load.h"

#include "base/error.h"
#include "gguf/keys.h"

#include <functional>
#include <set>

namespace penelope {

namespace {

class Loader {
  public:
    Loader(std::shared_ptr<const GgufReader> file, const HostLora & lora) : file_(std::move(file)), lora_(lora) {}

    // Loads the tensor and sets the pointer in the Backbone; null if an optional tensor is missing.
    void load_tensor(const TensorSpec & spec, WeightStore & store) {
        if (spec.is_optional && !file_->find_tensor(spec.gguf)) {
            return;
        }
        loaded_.insert(spec.gguf);
        const GgufTensor & tensor    = file_->get_tensor(spec.gguf, spec.ne);
        const bool         is_vector = spec.role == TensorRole::vector || spec.role == TensorRole::constant;
        if (is_vector && tensor.type != GGML_TYPE_F32) {
            throw Error(ErrorKind::format, file_->path() + ": tensor " + spec.gguf + " has type " +
                                               ggml_type_name(tensor.type) + ", expected f32");
        }
        *spec.node = store.add(file_, tensor,
                               is_vector                        ? WeightUse::vector
                               : spec.role == TensorRole::table ? WeightUse::table
                                                                : WeightUse::matrix);
        if (spec.linear) {
            spec.linear->lora = pair(spec.gguf, spec.ne[0], spec.ne[1], store);
        }
    }

    LoraPair pair(const std::string & name, int64_t n_in, int64_t n_out, WeightStore & store) {
        const auto found = lora_.find(name);
        if (found == lora_.end()) {
            return {};
        }
        const HostLoraPair & host = found->second;
        if (host.n_in != n_in || host.n_out != n_out) {
            throw Error(ErrorKind::format,
                        "adapter for " + name + ": is for [" + std::to_string(host.n_in) + ", " +
                            std::to_string(host.n_out) + "], the backbone has [" + std::to_string(n_in) + ", " +
                            std::to_string(n_out) + "]",
                        "the adapter belongs to another model");
        }
        used_pairs_.insert(name);
        LoraPair result;
        result.a = store.add_host(name + ".lora_a", { host.n_in, host.rank }, host.a);
        result.b = store.add_host(name + ".lora_b", { host.rank, host.n_out }, host.b);
        return result;
    }

    void check_all_used(const ModelConfig & config, bool allow_extra_tensors) const {
        std::set<std::string> skipped;
        for (int il = config.n_layer; il < config.n_layer + config.n_skipped_layers; il++) {
            skipped.insert("blk." + std::to_string(il));
        }
        for (const auto & [name, host] : lora_) {
            if (!used_pairs_.count(name)) {
                throw Error(ErrorKind::format,
                            "adapter for " + name + ": the backbone " + file_->path() + " has no such weight",
                            "the adapter belongs to another model");
            }
        }
        for (const GgufTensor & tensor : file_->tensors()) {
            const std::string block = tensor.name.substr(0, tensor.name.find('.', 4)); // "blk.7"
            if (!allow_extra_tensors && !loaded_.count(tensor.name) && !skipped.count(block)) {
                throw Error(ErrorKind::format, file_->path() + ": tensor " + tensor.name + " is not part of a " +
                                                   file_->get_str(keys::general_architecture) + " backbone");
            }
        }
    }

  private:
    std::shared_ptr<const GgufReader> file_;
    const HostLora &                  lora_;
    std::set<std::string>             loaded_, used_pairs_;
};

} // namespace

LayerSizes layer_sizes(const GgufReader & file) {
    const ModelConfig config = read_model_config(file);
    LayerSizes        sizes;
    sizes.layers.resize(size_t(config.n_layer));
    for (const TensorSpec & spec : tensors_of(config)) {
        const GgufTensor * tensor = file.find_tensor(spec.gguf);
        const size_t       size   = tensor ? tensor->size : spec.role == TensorRole::matrix ? sizes.embedding : 0;
        (spec.layer >= 0                  ? sizes.layers[size_t(spec.layer)]
         : spec.role == TensorRole::table ? sizes.embedding
                                          : sizes.head) += size;
    }
    return sizes;
}

LayerSizes layer_sizes(const ModelConfig & config, ggml_type type) {
    LayerSizes sizes;
    sizes.layers.resize(size_t(config.n_layer));
    for (const TensorSpec & spec : tensors_of(config)) {
        const bool   is_vector = spec.role == TensorRole::vector || spec.role == TensorRole::constant;
        const size_t n_rows    = spec.ne.size() > 1 ? size_t(spec.ne[1]) : 1;
        const size_t size      = ggml_row_size(is_vector ? GGML_TYPE_F32 : type, spec.ne[0]) * n_rows;
        (spec.layer >= 0                  ? sizes.layers[size_t(spec.layer)]
         : spec.role == TensorRole::table ? sizes.embedding
                                          : sizes.head) += size;
    }
    return sizes;
}

namespace {

using StoreOf = std::function<WeightStore &(const TensorSpec &)>;

Backbone load_into(const std::shared_ptr<const GgufReader> & file, const HostLora & lora, const StoreOf & store_of,
                   WeightStore & head_store, bool allow_extra_tensors) {
    Backbone model = make_backbone(read_model_config(*file));
    Loader   load(file, lora);
    for (const TensorSpec & spec : tensors_of(model)) {
        load.load_tensor(spec, store_of(spec));
    }
    if (!model.head.weight) {
        // A tied head is added as a second tensor: as a matrix it may have a faster layout than the embedding table.
        const GgufTensor & table = *file->find_tensor(ggml_get_name(model.embedding));
        model.head.weight        = head_store.add(file, table, WeightUse::matrix);
    }
    load.check_all_used(model.config, allow_extra_tensors);
    return model;
}

} // namespace

Backbone load_backbone(std::shared_ptr<const GgufReader> file, const HostLora & lora, WeightStore & store,
                       bool allow_extra_tensors) {
    return load_into(
        file, lora, [&](const TensorSpec &) -> WeightStore & { return store; }, store, allow_extra_tensors);
}

Backbone load_backbone(std::shared_ptr<const GgufReader> file, const HostLora & lora, WeightStores & stores,
                       bool allow_extra_tensors) {
    Backbone model = load_into(
        file, lora, [&](const TensorSpec & spec) -> WeightStore & { return stores.of(spec); }, stores.of_head(),
        allow_extra_tensors);
    model.layer_devices = stores.split().layers;
    for (int i = 0; stores.split().is_split() && i < stores.n_devices(); i++) {
        model.ropes.push_back(model.rope);
        for (Node * factors : { &model.ropes.back().factors, &model.ropes.back().long_factors }) {
            if (*factors) {
                const GgufTensor & tensor = *file->find_tensor(ggml_get_name(*factors));
                *factors                  = stores.on_device(i).add(file, tensor, WeightUse::vector);
            }
        }
    }
    return model;
}

} // namespace penelope
