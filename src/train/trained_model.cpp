#include "train/trained_model.h"

#include "base/error.h"
#include "base/format.h"
#include "gguf/keys.h"
#include "model/lora.h"

#include <algorithm>
#include <set>

namespace penelope {

namespace {

// Token whose embedding initializes latent rows, as in Coconut.
constexpr const char * kAnchorText = "<<";

std::shared_ptr<const GgufReader> open_file(const std::string & path) {
    return path.empty() ? nullptr : std::make_shared<const GgufReader>(GgufReader::open(path));
}

bool is_lora(const GgufReader & file) {
    return file.find_str(keys::adapter_type).value_or("") == "lora";
}

bool has_lora_pairs(const GgufReader & file) {
    const auto & tensors = file.tensors();
    return std::any_of(tensors.begin(), tensors.end(), [](const GgufTensor & t) { return is_lora_tensor(t.name); });
}

// Rank of the LoRA pair in `file` for a weight, 0: none. Throws Error if its shapes do not match the weight.
int64_t rank_in_file(const GgufReader & file, const Linear & layer) {
    const std::string  name = ggml_get_name(layer.weight);
    const GgufTensor * a    = file.find_tensor(name + ".lora_a");
    if (!a) {
        return 0;
    }
    file.get_tensor(name + ".lora_a", { layer.weight->ne[0], a->ne[1] });
    file.get_tensor(name + ".lora_b", { a->ne[1], layer.weight->ne[1] });
    return a->ne[1];
}

// transposed: [n_out, n_in] of type T. matrix: [n_in, n_out] of any type, read in blocks of rows.
template <typename T>
void set_transposed(Node transposed, const GgufReader & file, const GgufTensor & matrix, T (*convert)(float)) {
    constexpr int64_t kRows = 64;
    const int64_t     n_in = matrix.ne[0], n_out = matrix.ne[1];
    std::vector<T>    turned(size_t(n_in * n_out));
    for (int64_t first = 0; first < n_out; first += kRows) {
        const int64_t            n    = std::min(kRows, n_out - first);
        const std::vector<float> rows = read_rows(file, matrix, first, n);
        for (int64_t j = 0; j < n_in; j++) {
            for (int64_t i = 0; i < n; i++) {
                turned[size_t(j * n_out + first + i)] = convert(rows[size_t(i * n_in + j)]);
            }
        }
    }
    set_node(transposed, turned);
}

} // namespace

TrainedModel::TrainedModel(const TrainModelOptions & choice, const Backend & backend)
    : choice_(choice), training_(method_training(choice.method)), base_(open_file(choice.base)),
      init_(open_file(choice.init)), tokenizer_(Tokenizer::from_gguf(*base_)), store_(backend.device(), false),
      transposes_(backend.device(), false), is_cpu_(backend.device().is_cpu) {
    backbone_ = load_backbone(base_, {}, store_);
    store_.load();
    load_init();
    make_groups();
    std::vector<ParameterGroup> groups;
    for (const TrainableGroup & group : groups_) {
        groups.push_back(group.parameters);
    }
    AdamWConfig adam;
    adam.beta2 = choice.beta2;
    optimizer_ = std::make_unique<Optimizer>(backend, groups, adam);
    set_initial_values();
    attach_parameters();
    choose_loss_scale();
    if (choice.cache_transposes && !choice.full) {
        cache_transposes();
    }
}

// Takes the module settings from the --init sidecar and records the base model.
void TrainedModel::load_init() {
    sidecar_        = choice_.sidecar;
    sidecar_.method = choice_.method;
    if (init_) {
        if (choice_.full && has_lora_pairs(*init_)) {
            throw Error(ErrorKind::usage, "--init has LoRA pairs, which --full does not train",
                        "merge them into the model first: penelope export --as merged");
        }
        if (!is_lora(*init_) && !is_sidecar(*init_)) {
            throw Error(ErrorKind::usage, choice_.init + ": is neither a LoRA nor a sidecar",
                        "penelope info FILE shows what a file is");
        }
        if (is_sidecar(*init_)) {
            SidecarConfig from = read_sidecar_config(*init_);
            check_sidecar_tensors(*init_, from);
            check_base(from, read_base_info(*base_));
            if (from.method == choice_.method) {
                sidecar_       = from;
                sidecar_.task  = choice_.sidecar.task; // the task of this run's data
                sidecar_.match = choice_.sidecar.match;
            }
        }
        if (!choice_.full) {
            choice_.lora_alpha = init_->get_f32(keys::adapter_lora_alpha);
        }
    }
    sidecar_.base       = read_base_info(*base_);
    sidecar_.lora_alpha = choice_.full ? 0.0f : choice_.lora_alpha;
    if (training_.format()) {
        try {
            check_sidecar_config(sidecar_, "modules");
        } catch (const Error & error) { // the values came from flags
            throw Error(ErrorKind::usage, error.message(), error.hint);
        }
    }
}

void TrainedModel::make_groups() {
    const int64_t n_embd = backbone_.config.n_embd;
    if (choice_.full) {
        groups_ = backbone_groups(backbone_, choice_.weight_decay);
    } else {
        groups_.push_back(lora_group(
            backbone_,
            [&](const Linear & layer) {
                const int64_t held = init_ ? rank_in_file(*init_, layer) : 0;
                return held ? held : int64_t(choice_.lora_rank);
            },
            choice_.weight_decay));
    }
    if (training_.format()) {
        for (TrainableGroup & group : module_groups(sidecar_, n_embd, choice_.weight_decay)) {
            groups_.push_back(std::move(group));
        }
    }
    if (init_ && is_lora(*init_)) {
        std::set<std::string> known;
        for (const ParameterGroup::Parameter & parameter : groups_.front().parameters.parameters) {
            known.insert(parameter.name);
        }
        for (const GgufTensor & tensor : init_->tensors()) {
            if (!known.count(tensor.name)) {
                throw Error(ErrorKind::format, choice_.init + ": tensor " + in_quotes(tensor.name) +
                                                   " matches no weight of the base model");
            }
        }
    }
}

void TrainedModel::set_initial_values() {
    const std::vector<int32_t> anchor_tokens = tokenizer_.encode(kAnchorText);
    std::vector<float>         anchor        = read_rows(*base_, *base_->find_tensor("token_embd.weight"),
                                          anchor_tokens.empty() ? 0 : anchor_tokens.front(), 1);
    for (float & value : anchor) {
        value *= backbone_.config.embedding_scale; // latent rows enter behind the scaling
    }
    std::map<std::string, TensorShape> modules;
    for (const TensorShape & tensor : module_tensor_shapes(sidecar_, backbone_.config.n_embd)) {
        modules[tensor.name] = tensor;
    }
    for (const TrainableGroup & group : groups_) {
        for (const ParameterGroup::Parameter & parameter : group.parameters.parameters) {
            const std::string & name = parameter.name;
            const GgufReader *  file = choice_.full && !is_module_tensor(name) ? base_.get() : init_.get();
            const GgufTensor *  held = file ? file->find_tensor(name) : nullptr;
            if (held) {
                optimizer_->set_values(name, read_f32(*file, *held));
            } else if (is_module_tensor(name)) {
                optimizer_->set_values(name, initial_module(modules.at(name), anchor, choice_.seed));
            } else {
                optimizer_->set_values(name, initial_lora(name, parameter.ne, choice_.seed));
            }
        }
    }
}

// Makes backbone and modules refer to the tensors of the optimizer.
void TrainedModel::attach_parameters() {
    dropout_            = Dropout(choice_.dropout, choice_.seed, 0);
    backbone_.recompute = choice_.recompute;
    if (choice_.full) {
        for_each_weight(
            backbone_, [&](const TensorSpec & spec) { *spec.node = optimizer_->parameter(ggml_get_name(*spec.node)); });
    } else {
        std::set<std::string> seen;
        for_each_weight(backbone_, [&](const TensorSpec & spec) {
            n_frozen_ += seen.insert(ggml_get_name(*spec.node)).second ? ggml_nelements(*spec.node) : 0;
        });
        for_each_projection(backbone_, [&](Linear & layer) {
            const std::string name = ggml_get_name(layer.weight);
            layer.lora.a           = optimizer_->parameter(name + ".lora_a");
            layer.lora.b           = optimizer_->parameter(name + ".lora_b");
            layer.lora.scale       = choice_.lora_alpha / float(layer.lora.a->ne[1]);
            layer.lora.dropout     = choice_.dropout > 0 ? &dropout_ : nullptr;
        });
    }
    for (const TensorShape & tensor : module_tensor_shapes(sidecar_, backbone_.config.n_embd)) {
        modules_[tensor.name] = optimizer_->parameter(tensor.name);
    }
    objective_ = training_.objective(sidecar_, modules_);
}

// Caches transposes of frozen weights for the backward pass: F32 weights in F32, all others in F16, which takes half
// the memory, is the fastest type on CPUs (bench/backward_linear.cpp) and, with loss scaling, changes gradients by
// 3e-4.
void TrainedModel::cache_transposes() {
    std::vector<Linear *> layers;
    for (const TensorSpec & spec : tensors_of(backbone_)) {
        // On the CPU the loss uses rows of the head without a transpose, see cross_entropy().
        const bool is_needed = !is_cpu_ || spec.linear != &backbone_.head;
        if (spec.is_matrix() && is_needed) {
            layers.push_back(spec.linear);
        }
    }
    for (Linear * layer : layers) {
        const ggml_type type = layer->weight->type == GGML_TYPE_F32 ? GGML_TYPE_F32 : GGML_TYPE_F16;
        layer->transposed    = transposes_.add_empty(std::string(ggml_get_name(layer->weight)) + ".transposed", type,
                                                     { layer->weight->ne[1], layer->weight->ne[0] });
    }
    transposes_.load();
    // One at a time, so that only one is in memory twice.
    for (Linear * layer : layers) {
        const GgufTensor & matrix = *base_->find_tensor(ggml_get_name(layer->weight));
        if (layer->transposed->type == GGML_TYPE_F32) {
            set_transposed<float>(layer->transposed, *base_, matrix, [](float x) { return x; });
        } else {
            set_transposed<ggml_fp16_t>(layer->transposed, *base_, matrix, ggml_fp32_to_fp16);
        }
    }
}

void TrainedModel::choose_loss_scale() {
    constexpr float kScale = 4096.0f;
    loss_scale_            = is_cpu_ ? 1.0f : kScale;
    for_each_projection(backbone_, [&](const Linear & layer) {
        loss_scale_ = layer.weight->type == GGML_TYPE_F32 ? loss_scale_ : kScale;
    });
}

} // namespace penelope
