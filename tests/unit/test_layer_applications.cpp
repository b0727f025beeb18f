// The count of sequential layer applications, taken from the executed graph, at the paper's topology: L = 16.
#include <doctest/doctest.h>

#include "method/penelope.h"
#include "method/plain.h"
#include "method/thoughts.h"
#include "model/load.h"
#include "sidecar/load_modules.h"

using namespace penelope;

namespace {

struct Sixteen {
    Sixteen() : device(find_device("CPU")), store(device, false), tables(device, false) {
        ModelConfig c;
        c.architecture = "llama";
        c.n_layer      = 16;
        c.n_embd       = 32;
        c.n_ff         = 64;
        c.n_head       = 4;
        c.n_head_kv    = 2;
        c.head_dim     = 8;
        c.n_vocab      = 50;
        c.n_ctx_train  = 128;
        model          = random_backbone(c, GGML_TYPE_F32, 1, store);
        rows           = store.add_host("rows", { c.n_embd, 2 }, std::vector<float>(size_t(c.n_embd) * 2, 0.1f));
    }

    PenelopeMethod penelope(int start, int end) {
        SidecarConfig config;
        config.interval_start         = uint32_t(start);
        config.interval_end           = uint32_t(end);
        config.time_width             = 8;
        config.adapter_width          = 4;
        const PenelopeModules modules = assemble_modules(random_modules(config, model.config.n_embd, 2, store));
        store.load();
        return PenelopeMethod(modules, latent_shape(config),
                              make_time_tables(modules, latent_shape(config), device, tables), 5);
    }

    int count(const Method & method, int n_steps) {
        ContextOptions options;
        options.n_ctx = 64;
        Context context(model, device, options);
        return method.prefill(context, fresh_prompts({ { 1, 2, 3, 4, 5 } }), n_steps).layer_applications;
    }

    DeviceInfo  device;
    WeightStore store, tables;
    Backbone    model;
    Node        rows;
};

} // namespace

TEST_CASE("Penelope: L + (K + 1) r") {
    Sixteen              sixteen;
    const PenelopeMethod output_side = sixteen.penelope(11, 16);
    CHECK(sixteen.count(output_side, 0) == 21);
    CHECK(sixteen.count(output_side, 5) == 46);
    CHECK(sixteen.count(output_side, 6) == 51);
}

TEST_CASE("Penelope: early, middle and whole decoder") {
    Sixteen sixteen;
    CHECK(sixteen.count(sixteen.penelope(0, 5), 6) == 51);
    Sixteen again;
    CHECK(again.count(again.penelope(6, 11), 6) == 51);
    Sixteen whole;
    CHECK(whole.count(whole.penelope(0, 16), 6) == 128);
}

TEST_CASE("Coconut: (K + 2) L, plain: L") {
    Sixteen sixteen;
    sixteen.store.load();
    const ThoughtMethod coconut("coconut", { sixteen.rows, {} }, 8, 8);
    CHECK(sixteen.count(coconut, 8) == 160);
    CHECK(sixteen.count(coconut, 3) == 80);
    CHECK(sixteen.count(coconut, 0) == 32);
    CHECK(sixteen.count(PlainMethod(), 0) == 16);
}
