#include "train/dump_gradients.h"

#include "convert/safetensors.h"
#include "train/hf_layout.h"

namespace penelope {

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
