#include "support/training.h"

#include "support/difference.h"
#include "train/curriculum.h"
#include "train/dump_gradients.h"
#include "train/training_data.h"

#include <cmath>

namespace penelope::test {

Minibatch all_examples(const GoldenCase & golden, int n_steps) {
    Minibatch batch;
    batch.n_steps = n_steps;
    for (size_t i = 0; i < golden.n_examples(); i++) {
        batch.examples.push_back({ golden.prompt_ids(i), golden.target_ids(i) });
    }
    return batch;
}

Minibatch codi_examples(const GoldenCase & golden, const Tokenizer & tokenizer, int n_steps) {
    const Json           json = read_json_file(golden.source("codi.json"));
    std::vector<Example> examples;
    for (const Json & example : json["examples"]) {
        examples.push_back({ "", example["question"], example["steps"], example["answer"] });
    }
    const TrainingData data(examples, tokenizer, { "{question}\n", "The answer is: " });
    Minibatch          batch;
    batch.n_steps        = n_steps;
    batch.has_teacher    = true;
    batch.distill_weight = 20;
    for (size_t i = 0; i < data.size(); i++) {
        batch.examples.push_back(data.with_teacher(i, kAnswerOnly));
    }
    return batch;
}

TrainModelOptions train_options_of(const GoldenCase & golden, const std::string & method) {
    TrainModelOptions choice;
    choice.base   = golden.backbone();
    choice.init   = method == "penelope" ? golden.sidecar() : method == "codi" ? golden.codi_sidecar() : golden.lora();
    choice.method = method;
    return choice;
}

std::vector<double> lrs_of(const TrainedModel & model, const GoldenRecipe & recipe, double factor) {
    std::vector<double> lrs;
    for (const TrainableGroup & group : model.groups()) {
        lrs.push_back(factor * (group.lr_group == LrGroup::backbone ? recipe.lora_lr : recipe.module_lr));
    }
    return lrs;
}

Gradients gradients_of(const TrainedModel & model) {
    Gradients all;
    for (const TrainableGroup & group : model.groups()) {
        for (const auto & parameter : group.parameters.parameters) {
            all[parameter.name] = model.optimizer().gradient(parameter.name);
        }
    }
    return all;
}

double length_of(const Gradients & gradients) {
    double squared = 0;
    for (const auto & [name, values] : gradients) {
        for (float value : values) {
            squared += double(value) * value;
        }
    }
    return std::sqrt(squared);
}

void check_gradients(const TrainedModel & model, const SafetensorsReader & expected, const std::string & prefix,
                     double tolerance, float loss_scale) {
    const HfLayout form(model.backbone().config);
    size_t         n_compared = 0;
    for (const auto & [parameter, gradient] : gradients_of(model)) {
        const std::string name = form.name(parameter);
        CAPTURE(name);
        std::vector<float> found = form.values(parameter, gradient);
        for (float & value : found) {
            value /= loss_scale;
        }
        const std::vector<float> reference = expected.read_f32(prefix + name);
        CHECK(difference(found, reference) <= tolerance * largest(reference));
        n_compared++;
    }
    size_t n_expected = 0;
    for (const SafetensorsTensor & tensor : expected.tensors()) {
        n_expected += tensor.name.compare(0, prefix.size(), prefix) == 0 && tensor.name != prefix + "loss";
    }
    CHECK(n_compared == n_expected);
}

double slope_along(const Gradients & gradients, Optimizer & optimizer, double step,
                   const std::function<double()> & loss) {
    const double length = length_of(gradients);
    Gradients    start;
    for (const auto & [name, gradient] : gradients) {
        start[name] = optimizer.values(name);
    }
    const auto at = [&](double distance) {
        for (const auto & [name, gradient] : gradients) {
            std::vector<float> moved = start[name];
            for (size_t i = 0; i < moved.size(); i++) {
                moved[i] += float(distance * gradient[i] / length);
            }
            optimizer.set_values(name, moved);
        }
        return loss();
    };
    const double slope = (at(step) - at(-step)) / (2 * step);
    for (const auto & [name, values] : start) {
        optimizer.set_values(name, values);
    }
    return slope;
}

} // namespace penelope::test
