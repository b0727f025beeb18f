#include "train/dump_gradients.h"

#include "convert/safetensors.h"

namespace penelope {

namespace {

struct Half {
    std::string base;   // "blk.0.attn_q.weight"
    std::string suffix; // ".lora_a", ".lora_b" or empty
};

Half split(const std::string & parameter) {
    const size_t dot = parameter.rfind(".lora_");
    return dot == std::string::npos ? Half{ parameter, "" } : Half{ parameter.substr(0, dot), parameter.substr(dot) };
}

} // namespace

HfLayout::HfLayout(const ModelConfig & config) {
    for (TensorSpec & spec : tensors_of(config)) {
        const std::string name = spec.gguf;
        tensors_[name]         = std::move(spec);
    }
}

std::string HfLayout::name(const std::string & parameter) const {
    const Half half  = split(parameter);
    const auto found = tensors_.find(half.base);
    if (found == tensors_.end() || found->second.hf.empty()) {
        return parameter;
    }
    const std::string & name = found->second.hf;
    if (half.suffix.empty()) {
        return name;
    }
    return name.substr(0, name.rfind('.')) + (half.suffix == ".lora_a" ? ".lora_A.weight" : ".lora_B.weight");
}

std::vector<float> HfLayout::values(const std::string & parameter, std::vector<float> values) const {
    const Half half  = split(parameter);
    const auto found = tensors_.find(half.base);
    if (found == tensors_.end()) {
        return values;
    }
    // A reads what the weight reads, B writes what it writes.
    const TensorSpec &      spec    = found->second;
    const bool              is_a    = half.suffix == ".lora_a";
    const bool              is_b    = half.suffix == ".lora_b";
    const TensorPermutation rows    = is_a ? TensorPermutation() : spec.rows;
    const TensorPermutation columns = is_b ? TensorPermutation() : spec.columns;
    const int64_t           n_rows  = is_a ? int64_t(values.size()) / spec.ne[0] : spec.ne.back();
    const int64_t           width   = int64_t(values.size()) / n_rows;
    if (rows.is_same() && columns.is_same()) {
        return values;
    }
    std::vector<float> ordered(values.size());
    for (int64_t row = 0; row < n_rows; row++) {
        for (int64_t column = 0; column < width; column++) {
            ordered[size_t(row * width + column)] =
                values[size_t(rows.gguf_of_hf(row) * width + columns.gguf_of_hf(column))];
        }
    }
    return ordered;
}

void write_gradients(const TrainedModel & model, double loss, float scale, const std::string & path, bool force) {
    const HfLayout    form(model.backbone().config);
    SafetensorsWriter writer(path, force);
    writer.add_tensor("loss", SafetensorsType::f32, { 1 });
    const auto for_each_parameter = [&](const auto & visit) {
        for (const TrainableGroup & group : model.groups()) {
            for (const ParameterGroup::Parameter & parameter : group.parameters.parameters) {
                visit(parameter);
            }
        }
    };
    for_each_parameter([&](const ParameterGroup::Parameter & parameter) {
        writer.add_tensor(form.name(parameter.name), SafetensorsType::f32,
                          { parameter.ne.rbegin(), parameter.ne.rend() });
    });
    writer.begin_data();
    const float value = float(loss);
    writer.write(&value, sizeof(value));
    for_each_parameter([&](const ParameterGroup::Parameter & parameter) {
        std::vector<float> values = form.values(parameter.name, model.optimizer().gradient(parameter.name));
        for (float & number : values) {
            number /= scale;
        }
        writer.write(values.data(), values.size() * sizeof(float));
    });
    writer.finish();
}

} // namespace penelope
