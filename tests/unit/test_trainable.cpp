// What a run trains at the shape of the paper: LoRA of rank 16 on all projections of Llama-3.2-1B, and Penelope's
// modules.
#include "base/shape.h"
#include "train/trainable.h"

#include <doctest/doctest.h>

using namespace penelope;

namespace {

int64_t n_parameters(const TrainableGroup & group) {
    int64_t n = 0;
    for (const ParameterGroup::Parameter & parameter : group.parameters.parameters) {
        n += n_elements(parameter.ne);
    }
    return n;
}

} // namespace

TEST_CASE("the paper's counts of trained parameters") {
    constexpr int d = 2048;
    ModelConfig   c;
    c.architecture               = "llama";
    c.n_layer                    = 16;
    c.n_embd                     = d;
    c.n_ff                       = 8192;
    c.n_head                     = 32;
    c.n_head_kv                  = 8;
    c.head_dim                   = 64;
    Backbone               model = make_backbone(c);
    const ggml_context_ptr ctx   = new_tensor_context(size_t(c.n_layer) * 7);
    for (const TensorSpec & spec : tensors_of(model)) {
        if (spec.role == TensorRole::projection) {
            *spec.node = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F16, spec.ne[0], spec.ne[1]);
        }
    }
    CHECK(n_parameters(lora_group(
              model, [](const Linear &) { return int64_t(16); }, 0.01)) == 11272192);

    int64_t n_modules = 0;
    for (const TrainableGroup & group : module_groups(SidecarConfig(), d, 0.01)) {
        n_modules += n_parameters(group);
        // Rows, norms and biases do not decay.
        for (const ParameterGroup::Parameter & parameter : group.parameters.parameters) {
            const bool is_weight = parameter.ne.size() == 2 && parameter.name.find(".weight") != std::string::npos;
            CHECK((group.parameters.weight_decay > 0) == is_weight);
        }
    }
    CHECK(n_modules == 64080129);
}
