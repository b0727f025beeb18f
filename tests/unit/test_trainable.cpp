// What a run trains at the shape of the paper: LoRA of rank 16 on all projections of Llama-3.2-1B, and Penelope's modules.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
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
    constexpr int          n_layer = 16, d = 2048, d_kv = 512, d_ff = 8192;
    const ggml_context_ptr ctx        = new_tensor_context(n_layer * 7);
    const auto             projection = [&](int64_t n_in, int64_t n_out) {
        Linear layer;
        layer.weight = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F16, n_in, n_out);
        return layer;
    };
    Backbone model;
    for (int il = 0; il < n_layer; il++) {
        LlamaLayer layer{};
        layer.q    = projection(d, d);
        layer.k    = projection(d, d_kv);
        layer.v    = projection(d, d_kv);
        layer.o    = projection(d, d);
        layer.gate = projection(d, d_ff);
        layer.up   = projection(d, d_ff);
        layer.down = projection(d_ff, d);
        model.layers.push_back(layer);
    }
    CHECK(n_parameters(lora_group(
              model, [](const Linear &) { return int64_t(16); }, 0.01)) == 11272192);

    int64_t n_modules = 0;
    for (const TrainableGroup & group : module_groups(SidecarConfig(), d, 0.01)) {
        n_modules += n_parameters(group);
        // Rows, norms and biases do not decay.
        for (const ParameterGroup::Parameter & parameter : group.parameters.parameters) {
            const bool is_weight = parameter.ne.size() == 2 && parameter.name.find(".weight") != std::string::npos;
            CHECK((group.parameters.decay > 0) == is_weight);
        }
    }
    CHECK(n_modules == 64080129);
}
