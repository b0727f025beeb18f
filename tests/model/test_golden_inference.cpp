// The latent trajectory against the PyTorch reference: every intermediate state, first logits, greedy ids and the count
// of sequential layer applications, for all golden cases; and what must hold for any of them.
#include <doctest/doctest.h>

#include "arch/config.h"
#include "infer/session.h"
#include "method/decode.h"
#include "method/penelope.h"
#include "support/difference.h"
#include "support/golden.h"

#include <ggml-cpu.h>

#include <algorithm>
#include <cmath>
#include <map>

using namespace penelope;
using penelope::test::GoldenCase;

namespace {

// States are of scale 3; F32 against F32 in another order of summation.
constexpr float kTolerance = 2e-4f;

const std::vector<std::string> & kCases = test::kTrajectoryCases;

const GoldenCase & golden(const std::string & name) {
    static std::map<std::string, std::unique_ptr<GoldenCase>> cases;
    auto &                                                    found = cases[name];
    if (!found) {
        found = std::make_unique<GoldenCase>(name);
    }
    return *found;
}

std::shared_ptr<const Engine> load(const GoldenCase & g, bool sidecar) {
    LoadOptions options;
    options.base    = g.backbone();
    options.sidecar = sidecar ? g.sidecar() : "";
    return Engine::load(options);
}

SessionOptions f32_session(int n_streams = 1) {
    SessionOptions options;
    options.n_ctx     = 128;
    options.kv_type   = GGML_TYPE_F32;
    options.n_streams = n_streams;
    return options;
}

std::vector<float> all_logits(Session & session, const Tokens & prompt) {
    std::vector<float> rows;
    int                applications = 0;
    for (size_t n = 1; n <= prompt.size(); n++) {
        const Prompt front{ Tokens(prompt.begin(), prompt.begin() + ptrdiff_t(n)), 0, int(n) - 1 };
        const auto   last = prefill(session.context(), { front }, applications);
        rows.insert(rows.end(), last[0].begin(), last[0].end());
    }
    return rows;
}

} // namespace

TEST_CASE("logits of the backbone, alone and with LoRA, at every position") {
    for (const std::string & name : kCases) {
        CAPTURE(name);
        const GoldenCase & g = golden(name);
        Session            plain(load(g, false), f32_session());
        CHECK(test::difference(all_logits(plain, g.prompt_ids(0)), g.tensor("base_logits")) < kTolerance);

        LoadOptions options;
        options.base  = g.backbone();
        options.loras = { { g.lora(), 0.25f }, { g.lora(), 0.75f } }; // two adapters that add up to one
        Session lora(Engine::load(options), f32_session());
        CHECK(test::difference(all_logits(lora, g.prompt_ids(0)), g.tensor("lora_logits")) < kTolerance);
    }
}

TEST_CASE("a context longer than the original one rotates with the long factors") {
    const GoldenCase & g       = golden("phi3");
    SessionOptions     options = f32_session();
    options.n_ctx              = 512; // above 256
    Session session(load(g, false), options);
    Tokens  tokens;
    for (int i = 0; i < 300; i++) {
        tokens.push_back(i * 7 % session.engine().config().n_vocab);
    }
    int        applications = 0;
    const auto logits       = prefill(session.context(), { { tokens, 0, 0 } }, applications);
    CHECK(test::difference(logits[0], g.tensor("long_logits")) < kTolerance);
    Session    short_session(load(g, false), f32_session());
    const auto far = test::difference(all_logits(session, g.prompt_ids(0)), all_logits(short_session, g.prompt_ids(0)));
    CHECK_FALSE(far < 0.01f);
}

TEST_CASE("every state of the trajectory, first logits, greedy answer and layer applications") {
    for (const std::string & name : kCases) {
        const GoldenCase & g = golden(name);
        Session            session(load(g, true), f32_session());
        for (int k : { 0, 1, 3, 6 }) {
            for (size_t example : { size_t(0), size_t(1) }) {
                const std::string p = "K" + std::to_string(k) + ".ex" + std::to_string(example);
                CAPTURE(name);
                CAPTURE(p);
                const Tokens prompt     = g.prompt_ids(example);
                size_t       n_compared = 0;
                for (const StateTensor & state : session.dump(prompt, k)) {
                    const std::string expected = p + "." + state.name;
                    if (!g.expected().find(expected)) {
                        continue;
                    }
                    CAPTURE(state.name);
                    CHECK(test::difference(state.data, g.tensor(expected)) < kTolerance);
                    n_compared++;
                }
                const bool gru = name != "overwrite";
                CHECK(n_compared == size_t(5 + k * (gru ? 5 : 4)));

                GenerateOptions options;
                options.n_steps     = k;
                options.n_predict   = 12;
                const Answer answer = session.generate(prompt, options);
                CHECK(answer.tokens == g.greedy(k, example));
                CHECK(answer.layer_applications == g.layer_applications(k));
                CHECK(answer.method == "penelope");
                CHECK(answer.n_steps == k);
            }
        }
    }
}

TEST_CASE("the answer's logits follow the reference token by token") {
    for (const std::string & name : kCases) {
        CAPTURE(name);
        const GoldenCase & g      = golden(name);
        const auto         engine = load(g, true);
        Session            session(engine, f32_session());
        const Tokens       prompt   = g.prompt_ids(1);
        const auto         expected = g.tensor("K3.ex1.greedy_logits");
        const Tokens       greedy   = g.greedy(3, 1);
        const Prefill prefilled = engine->method("penelope").prefill(session.context(), fresh_prompts({ prompt }), 3);
        std::vector<float> rows = prefilled.logits[0];
        for (size_t i = 0; i + 1 < greedy.size(); i++) {
            const auto next = decode(session.context(), { { 0, prefilled.n_past[0] + int(i), greedy[i] } });
            rows.insert(rows.end(), next[0].begin(), next[0].end());
        }
        CHECK(test::difference(rows, expected) < kTolerance);
    }
}

TEST_CASE("one graph computation before the first answer token, and the graph is used again") {
    const GoldenCase & g = golden("last");
    Session            session(load(g, true), f32_session());
    GenerateOptions    options;
    options.n_steps   = 6;
    options.n_predict = 1;
    Context & context = session.context();
    session.generate(g.prompt_ids(0), options);
    CHECK(context.n_computes() == 1);
    CHECK(context.n_built() == 1);
    Tokens other = g.prompt_ids(0);
    std::swap(other[3], other[5]);
    session.generate(other, options);
    CHECK(context.n_computes() == 2);
    CHECK(context.n_built() == 1);
}

TEST_CASE("a bucket pads prompts of several lengths into one graph without changing the answer") {
    for (const std::string & name : kCases) {
        CAPTURE(name);
        const GoldenCase & g        = golden(name);
        SessionOptions     bucketed = f32_session();
        bucketed.bucket             = 16;
        Session         padded(load(g, true), bucketed), exact(load(g, true), f32_session());
        GenerateOptions options;
        options.n_steps   = 3;
        options.n_predict = 12;
        // 17 and 19 tokens: both padded to 32.
        for (size_t example : { size_t(0), size_t(1) }) {
            CHECK(padded.generate(g.prompt_ids(example), options).tokens ==
                  exact.generate(g.prompt_ids(example), options).tokens);
        }
        options.n_predict = 1;
        const auto built  = padded.context().n_built();
        padded.generate(g.prompt_ids(0), options);
        padded.generate(g.prompt_ids(1), options);
        CHECK(padded.context().n_built() == built);
    }
}

TEST_CASE("the prompt cache is byte-identical before and after the refinements") {
    for (const std::string & name : kCases) {
        CAPTURE(name);
        const GoldenCase &                g      = golden(name);
        const auto                        engine = load(g, true);
        const int                         n      = int(g.prompt_ids(0).size());
        std::vector<std::vector<uint8_t>> caches;
        for (int k : { 0, 6 }) {
            Session session(engine, f32_session());
            engine->method("").prefill(session.context(), fresh_prompts({ g.prompt_ids(0) }), k);
            std::vector<uint8_t> all;
            for (int il = 0; il < engine->config().n_layer; il++) {
                const auto layer = session.context().cache().bytes(il, 0, n);
                all.insert(all.end(), layer.begin(), layer.end());
            }
            caches.push_back(all);
        }
        CHECK(caches[0] == caches[1]);
        CHECK(std::any_of(caches[0].begin(), caches[0].end(), [](uint8_t b) { return b != 0; }));
    }
}

TEST_CASE("a batch gives each question what it gets alone") {
    for (const std::string & name : kCases) {
        CAPTURE(name);
        const GoldenCase &  g      = golden(name);
        const auto          engine = load(g, true);
        Session             batch(engine, f32_session(4)), single(engine, f32_session());
        std::vector<Tokens> prompts;
        for (size_t i = 0; i < 4; i++) {
            prompts.push_back(g.prompt_ids(i));
        }
        GenerateOptions options;
        options.n_steps        = 3;
        options.n_predict      = 8;
        const Prefill together = engine->method("").prefill(batch.context(), fresh_prompts(prompts), 3);
        for (size_t i = 0; i < 4; i++) {
            const Prefill alone = engine->method("").prefill(single.context(), fresh_prompts({ prompts[i] }), 3);
            CHECK(test::difference(together.logits[i], alone.logits[0]) < 1e-4f);
        }
        const auto answers = batch.generate_batch(prompts, options);
        for (size_t i = 0; i < 4; i++) {
            CHECK(answers[i].tokens == single.generate(prompts[i], options).tokens);
        }
    }
}

TEST_CASE("a sweep over K gives what separate runs give") {
    for (const std::string & name : kCases) {
        CAPTURE(name);
        const GoldenCase &        g = golden(name);
        Session                   session(load(g, true), f32_session(2));
        const std::vector<Tokens> prompts{ g.prompt_ids(0), g.prompt_ids(1) };
        const std::vector<int>    steps{ 0, 1, 3, 6 };
        GenerateOptions           options;
        options.n_predict = 12;
        const auto sweep  = session.generate_sweep(prompts, steps, options);
        REQUIRE(sweep.size() == steps.size());
        for (size_t i = 0; i < steps.size(); i++) {
            for (size_t example = 0; example < 2; example++) {
                const std::string p = "K" + std::to_string(steps[i]) + ".ex" + std::to_string(example);
                CAPTURE(p);
                CHECK(sweep[i][example].tokens == g.greedy(steps[i], example));
                CHECK(sweep[i][example].layer_applications == g.layer_applications(steps[i]));
            }
        }
    }
}

TEST_CASE("a prompt longer than a batch gives the same answer in chunks") {
    for (const std::string & name : kCases) {
        CAPTURE(name);
        const GoldenCase & g       = golden(name);
        SessionOptions     chunked = f32_session();
        chunked.n_batch            = 5;
        const auto    engine       = load(g, true);
        Session       small(engine, chunked), whole(engine, f32_session());
        const Prefill a = engine->method("").prefill(small.context(), fresh_prompts({ g.prompt_ids(1) }), 3);
        const Prefill b = engine->method("").prefill(whole.context(), fresh_prompts({ g.prompt_ids(1) }), 3);
        CHECK(test::difference(a.logits[0], b.logits[0]) < 1e-4f);
        CHECK(small.context().n_computes() == 4);
    }
}

TEST_CASE("an F16 cache and Q8_0 weights stay near the F32 reference") {
    // Stated bounds on the first logits, which are of scale 3. F16 keys and values keep 11 bits. Q8_0 keeps 8 bits of
    // each weight and of each activation it meets; heads of 16 are too narrow for a Q8_0 cache. A delta net scales its
    // keys and queries to length one, which with random weights enlarges any rounding: Q8_0 weights decoded and
    // computed in F32 move the logits of qwen35 by 0.9, so there the weights keep the 11 bits of F16. A processor that
    // multiplies and adds in 16 bits, as ARM's do from v8.2 on, is held to the bound of devices that do.
    const float f16_cache    = ggml_cpu_has_fp16_va() ? 2e-2f : 4e-3f;
    const float f16_weights  = ggml_cpu_has_fp16_va() ? 0.15f : 0.1f;
    const float q8_0_weights = 0.15f;
    for (const std::string & name : kCases) {
        CAPTURE(name);
        const GoldenCase & g        = golden(name);
        const auto         expected = g.tensor("K6.ex0.first_logits");
        SessionOptions     options  = f32_session();
        options.kv_type             = GGML_TYPE_F16;
        const auto    engine        = load(g, true);
        Session       session(engine, options);
        const Prefill prefilled = engine->method("").prefill(session.context(), fresh_prompts({ g.prompt_ids(0) }), 6);
        CHECK(test::difference(prefilled.logits[0], expected) < f16_cache);

        const bool      is_recurrent = n_recurrent(engine->backbone()) > 0;
        QuantizeOptions quantize;
        quantize.in_path  = g.backbone();
        quantize.out_path = g.file("rounded.gguf");
        quantize.type     = is_recurrent ? "F16" : "Q8_0";
        quantize_file(quantize);
        LoadOptions small;
        small.base            = quantize.out_path;
        small.sidecar         = g.sidecar();
        const auto    rounded = Engine::load(small);
        Session       rough(rounded, f32_session());
        const Prefill near  = rounded->method("").prefill(rough.context(), fresh_prompts({ g.prompt_ids(0) }), 6);
        const auto    worst = test::difference(near.logits[0], expected);
        MESSAGE(name << ": " << quantize.type << " weights move the first logits by at most " << worst);
        CHECK(worst < (is_recurrent ? f16_weights : q8_0_weights));

        options.kv_type = GGML_TYPE_Q8_0;
        if (engine->config().head_dim % 32 != 0) {
            CHECK_THROWS_WITH(Session(engine, options), doctest::Contains("multiple of 32"));
        }
    }
}

TEST_CASE("invalid requests name the reason") {
    const GoldenCase & g = golden("last");
    Session            session(load(g, true), f32_session());
    GenerateOptions    options;
    options.n_steps = 9;
    CHECK_THROWS_WITH(session.generate(g.prompt_ids(0), options), doctest::Contains("0 to 8"));
    options.n_steps = 3;
    CHECK_THROWS_WITH(session.generate({}, options), doctest::Contains("empty"));
    CHECK_THROWS_WITH(session.generate(Tokens(120, 5), options), doctest::Contains("128"));
    CHECK_THROWS_WITH(session.generate({ 1, 2, 100000 }, options), doctest::Contains("100000"));
    options.method = "telepathy";
    CHECK_THROWS_WITH(session.generate(g.prompt_ids(0), options), doctest::Contains("telepathy"));
    // The other backbone has the same sizes but another shape of layers.
    LoadOptions wrong;
    wrong.base    = golden("full").backbone();
    wrong.sidecar = g.sidecar();
    CHECK_THROWS_WITH(Engine::load(wrong), doctest::Contains("block_count"));
}

TEST_CASE("a prompt that shares its beginning with what a stream holds computes only the rest") {
    for (const std::string & name : kCases) {
        CAPTURE(name);
        const GoldenCase & g      = golden(name);
        const auto         engine = load(g, true);
        Session            fresh(engine, f32_session()), used(engine, f32_session(3));
        const Method &     method = engine->method("");
        Tokens             first  = g.prompt_ids(0);
        first.insert(first.end(), first.begin(), first.begin() + 8);
        Tokens second = first;
        second.back() = g.prompt_ids(1).front();
        const int n   = int(first.size());
        // A recurrent state cannot go back by one row.
        const int n_rest = n_recurrent(engine->backbone()) > 0 ? n : 1;

        method.prefill(used.context(), { { first, 2, 0 } }, 2);
        CHECK(used.context().n_token_rows() == n);
        CHECK(used.context().cache().restore_checkpoint(2, n - 1) == n - n_rest);
        const Prefill kept = method.prefill(used.context(), { { second, 2, n - n_rest } }, 3);
        CHECK(used.context().n_token_rows() == n + n_rest);
        const Prefill alone = method.prefill(fresh.context(), fresh_prompts({ second }), 3);
        CHECK(test::difference(kept.logits[0], alone.logits[0]) < 1e-4f);

        // Through a session, whatever the method before.
        GenerateOptions options;
        options.n_predict = 4;
        options.method    = "cot";
        fresh.clear();
        fresh.generate(first, options);
        options.method        = "";
        const int64_t n_rows  = fresh.context().n_token_rows();
        const auto    through = fresh.generate(second, options).tokens;
        CHECK(fresh.context().n_token_rows() - n_rows == n_rest + int64_t(through.size()) - 1);
        Session other(engine, f32_session());
        CHECK(through == other.generate(second, options).tokens);
    }
}
