#include "train/trainable.h"

#include "base/format.h"

#include "base/rng.h"
#include "base/shape.h"

#include <cmath>
#include <set>

namespace penelope {

namespace {

constexpr double kRowStddev = 0.02;

std::vector<float> uniform_within(double bound, size_t n, Rng rng) {
    std::vector<float> values(n);
    for (float & value : values) {
        value = float((2.0 * rng.uniform() - 1.0) * bound);
    }
    return values;
}

std::vector<float> normal_values(size_t n, Rng rng) {
    std::vector<float> values(n);
    for (float & value : values) {
        value = float(kRowStddev * rng.normal());
    }
    return values;
}

// A weight matrix of a module, as opposed to its rows, norms and biases.
bool is_module_matrix(const TensorShape & tensor) {
    return ends_with(tensor.name, ".weight") && tensor.ne.size() == 2;
}

} // namespace

void for_each_projection(Backbone & model, const std::function<void(Linear & layer)> & visit) {
    for (const TensorSpec & spec : tensors_of(model)) {
        if (spec.role == TensorRole::projection) {
            visit(*spec.linear);
        }
    }
}

void for_each_weight(Backbone & model, const std::function<void(const TensorSpec & spec)> & visit) {
    for (const TensorSpec & spec : tensors_of(model)) {
        if (*spec.node && spec.role != TensorRole::constant) {
            visit(spec);
        }
    }
}

TrainableGroup lora_group(Backbone & model, const std::function<int64_t(const Linear & layer)> & rank,
                          double weight_decay) {
    TrainableGroup group{ { "lora", weight_decay, {} }, LrGroup::backbone };
    for_each_projection(model, [&](Linear & projection) {
        const std::string name = ggml_get_name(projection.weight);
        const int64_t     r    = rank(projection);
        group.parameters.parameters.push_back({ name + ".lora_a", { projection.weight->ne[0], r } });
        group.parameters.parameters.push_back({ name + ".lora_b", { r, projection.weight->ne[1] } });
    });
    return group;
}

std::vector<TrainableGroup> module_groups(const SidecarConfig & sidecar, int64_t n_embd, double weight_decay) {
    TrainableGroup matrices{ { "modules", weight_decay, {} }, LrGroup::modules };
    TrainableGroup rest{ { "module rows", 0.0, {} }, LrGroup::modules };
    for (const TensorShape & tensor : module_tensor_shapes(sidecar, n_embd)) {
        (is_module_matrix(tensor) ? matrices : rest).parameters.parameters.push_back({ tensor.name, tensor.ne });
    }
    std::vector<TrainableGroup> groups;
    for (TrainableGroup & group : std::vector<TrainableGroup>{ matrices, rest }) {
        if (!group.parameters.parameters.empty()) {
            groups.push_back(group);
        }
    }
    return groups;
}

std::vector<TrainableGroup> backbone_groups(Backbone & model, double weight_decay) {
    TrainableGroup        matrices{ { "weights", weight_decay, {} }, LrGroup::backbone };
    TrainableGroup        rest{ { "embedding and norms", 0.0, {} }, LrGroup::backbone };
    std::set<std::string> seen; // a tied head is the embedding
    for_each_weight(model, [&](const TensorSpec & spec) {
        const std::string name = ggml_get_name(*spec.node);
        if (seen.insert(name).second) {
            (spec.is_matrix() ? matrices : rest).parameters.parameters.push_back({ name, spec.ne });
        }
    });
    return { matrices, rest };
}

std::vector<float> initial_lora(const std::string & name, const std::vector<int64_t> & ne, uint64_t seed) {
    if (ends_with(name, ".lora_b")) {
        return std::vector<float>(size_t(n_elements(ne)), 0.0f);
    }
    return uniform_within(1.0 / std::sqrt(double(ne[0])), size_t(n_elements(ne)), Rng(seed, stream_id(name)));
}

std::vector<float> initial_module(const TensorShape & tensor, const std::vector<float> & anchor, uint64_t seed) {
    const size_t       n = size_t(n_elements(tensor.ne));
    const Rng          rng(seed, stream_id(tensor.name));
    std::vector<float> values(n, tensor.start == TensorInit::ones ? 1.0f : 0.0f);
    if (tensor.start == TensorInit::uniform) {
        values = uniform_within(1.0 / std::sqrt(double(tensor.fan_in)), n, rng);
    }
    if (tensor.start == TensorInit::noise || tensor.start == TensorInit::anchor_noise) {
        values = normal_values(n, rng);
    }
    if (tensor.start == TensorInit::anchor || tensor.start == TensorInit::anchor_noise) {
        for (size_t i = 0; i < n; i++) {
            values[i] += anchor[i % anchor.size()];
        }
    }
    return values;
}

} // namespace penelope
