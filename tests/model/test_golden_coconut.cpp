// Coconut against the PyTorch reference: thoughts, first logits, greedy ids and layer applications.
#include <doctest/doctest.h>

#include "method/decode.h"
#include "method/thoughts.h"
#include "model/load.h"
#include "support/difference.h"
#include "support/golden.h"

#include <algorithm>

using namespace penelope;

namespace {

constexpr float kTolerance = 2e-4f;

} // namespace

TEST_CASE("thoughts, first logits and greedy answers") {
    std::string name;
    SUBCASE("attention alone") {
        name = "last";
    }
    SUBCASE("delta nets and attention") {
        name = "qwen35";
    }
    const test::GoldenCase  golden(name);
    const SafetensorsReader expected = SafetensorsReader::open(golden.source("coconut.safetensors"));
    const Json              json     = read_json_file(golden.source("coconut.json"));

    HostLora lora;
    add_lora(lora, GgufReader::open(golden.lora()), 1.0f, false);
    const DeviceInfo device = find_device("CPU");
    WeightStore      store(device, true);
    const Backbone   model =
        load_backbone(std::make_shared<const GgufReader>(GgufReader::open(golden.backbone())), lora, store);
    const int d    = model.config.n_embd;
    Node      rows = store.add_host("coconut.token.rows", { d, 2 }, expected.read_f32("coconut.token.rows"));
    store.load();

    ContextOptions options;
    options.n_ctx     = 128;
    options.n_streams = 2;
    options.kv_type   = GGML_TYPE_F32;
    Context             context(model, device, options);
    const ThoughtMethod coconut("coconut", { rows, {} }, 8, 3);
    for (int k : { 1, 3 }) {
        for (size_t example : { size_t(0), size_t(1) }) {
            const std::string p = "K" + std::to_string(k) + ".ex" + std::to_string(example);
            CAPTURE(p);
            const auto states = coconut.states(context, { golden.prompt_ids(example), 0, 0 }, k);
            CHECK(states.size() == size_t(k + 1));
            for (const StateTensor & state : states) {
                CHECK(test::difference(state.data, expected.read_f32(p + "." + state.name)) < kTolerance);
            }
            const auto before    = context.n_computes();
            Prefill    prefilled = coconut.prefill(context, fresh_prompts({ golden.prompt_ids(example) }), k);
            CHECK(context.n_computes() == before + 1);
            CHECK(prefilled.layer_applications == json["layer_applications"][std::to_string(k)].get<int>());

            Tokens answer;
            auto   logits = prefilled.logits[0];
            for (size_t i = 0; i < json["greedy"][p].size(); i++) {
                answer.push_back(int32_t(std::max_element(logits.begin(), logits.end()) - logits.begin()));
                logits = decode(context, { { 0, prefilled.n_past[0] + int(i), answer.back() } })[0];
            }
            CHECK(answer == json["greedy"][p].get<Tokens>());
        }
    }

    const Prefill both = coconut.prefill(context, fresh_prompts({ golden.prompt_ids(0), golden.prompt_ids(1) }), 3);
    CHECK(test::difference(both.logits[0], expected.read_f32("K3.ex0.first_logits")) < kTolerance);
    CHECK(test::difference(both.logits[1], expected.read_f32("K3.ex1.first_logits")) < kTolerance);
}
