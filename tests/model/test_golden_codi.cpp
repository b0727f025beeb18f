// CODI against the PyTorch reference, from files: thoughts, first logits and layer applications; and the beginning of
// the answer, which is given instead of generated.
#include <doctest/doctest.h>

#include "infer/session.h"
#include "method/decode.h"
#include "method/latent_steps.h"
#include "sidecar/sidecar.h"
#include "support/difference.h"
#include "support/golden.h"
#include "text/tokenizer.h"

using namespace penelope;

namespace {

constexpr double kTolerance = 2e-4;

struct Case {
    Case() {
        LoadOptions load;
        load.base    = golden.backbone();
        load.sidecar = golden.codi_sidecar();
        load.device  = "CPU";
        engine       = Engine::load(load);
        SessionOptions options;
        options.kv_type   = GGML_TYPE_F32;
        options.n_threads = 1;
        options.n_streams = 2;
        options.n_ctx     = 128;
        session           = std::make_unique<Session>(engine, options);
    }
    Tokens prompt(size_t i) const { return json["examples"][i]["prompt_ids"].get<Tokens>(); }

    test::GoldenCase              golden{ "last" };
    SafetensorsReader             expected = SafetensorsReader::open(golden.source("codi.safetensors"));
    Json                          json     = read_json_file(golden.source("codi.json"));
    std::shared_ptr<const Engine> engine;
    std::unique_ptr<Session>      session;
};

} // namespace

TEST_CASE("thoughts and first logits") {
    Case c;
    CHECK(c.engine->sidecar()->projection_width == 48);
    for (int k : { 1, 3 }) {
        const std::string p = "K" + std::to_string(k) + ".ex0.";
        CAPTURE(p);
        const auto states = c.session->dump(c.prompt(0), k);
        CHECK(states.size() == size_t(k + 1));
        for (const StateTensor & state : states) {
            CAPTURE(state.name);
            CHECK(test::difference(state.data, c.expected.read_f32(p + state.name)) < kTolerance);
        }
        GenerateOptions generate;
        generate.n_steps   = k;
        generate.n_predict = 1;
        CHECK(c.session->generate(c.prompt(0), generate).layer_applications ==
              c.json["layer_applications"][std::to_string(k)].get<int>());
    }
}

TEST_CASE("the prefix rides with the end row") {
    Case                       c;
    const std::vector<int32_t> prefix = c.engine->tokenizer().encode("The answer is:");
    const std::vector<int32_t> answer = c.json["examples"][0]["answer_ids"];
    CHECK(prefix == std::vector<int32_t>(answer.begin(), answer.begin() + ptrdiff_t(prefix.size())));

    // The same rows one after the other: the end row alone, then each token of the prefix.
    Context &      context = c.session->context();
    const Method & codi    = c.engine->method("codi");
    codi.states(context, { c.prompt(0), 0, 0 }, 3);
    int                             row = int(c.prompt(0).size()) + 3 + 2;
    std::vector<std::vector<float>> logits;
    for (int32_t token : prefix) {
        logits = decode(context, { { 0, row++, token } });
    }
    const Prefill prefilled = codi.prefill(context, fresh_prompts({ c.prompt(0), c.prompt(1) }), 3);
    CHECK(prefilled.n_past[0] == row);
    CHECK(test::difference(prefilled.logits[0], logits[0]) < kTolerance);
    const Prefill alone = codi.prefill(context, fresh_prompts({ c.prompt(1) }), 3);
    CHECK(test::difference(prefilled.logits[1], alone.logits[0]) < kTolerance);
}

TEST_CASE("a step at a time") {
    Case           c;
    Context &      context = c.session->context();
    const Method & codi    = c.engine->method("codi");
    LatentSteps &  steps   = *codi.steps(context);
    steps.start({ { c.prompt(0), 1, 0 } });
    CHECK(test::difference(steps.read_state(1)[0].data, c.expected.read_f32("K3.ex0.thought_1")) < kTolerance);
    steps.advance({ 1 });
    CHECK(test::difference(steps.read_state(1)[0].data, c.expected.read_f32("K3.ex0.thought_2")) < kTolerance);
    steps.start({ { c.prompt(1), 0, 0 } });
    steps.advance({ 1, 0 });
    steps.advance({ 1 });
    const Prefill both = steps.finish({ 1, 0 });
    CHECK(steps.layer_applications(1) == c.json["layer_applications"]["3"].get<int>());
    CHECK(test::difference(both.logits[0], codi.prefill(context, fresh_prompts({ c.prompt(0) }), 3).logits[0]) <
          kTolerance);
    CHECK(test::difference(both.logits[1], codi.prefill(context, fresh_prompts({ c.prompt(1) }), 1).logits[0]) <
          kTolerance);
    CHECK(both.n_past[0] == int(c.prompt(0).size()) + codi.n_extra_rows(3));
}
