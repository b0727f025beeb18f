// Qwen3.5's hybrid of delta nets and attention beyond what the golden cases say of every architecture: intervals of
// each kind of layer, going on from earlier turns, conversion of its own tensors, and files that are not right.
#include <doctest/doctest.h>

#include "base/error.h"
#include "gguf/reader.h"
#include "infer/session.h"
#include "method/method.h"
#include "model/backbone.h"
#include "support/difference.h"
#include "support/errors.h"
#include "support/training.h"
#include "train/batch_graph.h"

#include <cmath>
#include <cstring>
#include <fstream>

using namespace penelope;
using penelope::test::all_examples;
using penelope::test::contains;
using penelope::test::cpu;
using penelope::test::error_of;
using penelope::test::GoldenCase;
using penelope::test::Gradients;
using penelope::test::gradients_of;
using penelope::test::length_of;
using penelope::test::slope_along;
using penelope::test::train_options_of;

namespace {

// The golden modules on another interval.
std::string sidecar_on(const GoldenCase & golden, int start, int end) {
    const std::string dir = golden.file("interval" + std::to_string(start) + "_" + std::to_string(end));
    std::filesystem::create_directory(dir);
    std::filesystem::copy_file(golden.source("penelope/penelope.safetensors"), dir + "/penelope.safetensors");
    Json config        = read_json_file(golden.source("penelope/penelope_config.json"));
    config["interval"] = { start, end };
    std::ofstream(dir + "/penelope_config.json") << dump_json(config);
    ConvertOptions options;
    options.dir       = dir;
    options.lora_dir  = golden.source("lora");
    options.base_path = golden.backbone();
    options.out_path  = dir + ".gguf";
    convert_directory(options);
    return options.out_path;
}

SessionOptions f32_session() {
    SessionOptions options;
    options.n_ctx   = 128;
    options.kv_type = GGML_TYPE_F32;
    return options;
}

std::shared_ptr<const Engine> load(const GoldenCase & golden, const std::string & sidecar) {
    LoadOptions options;
    options.base    = golden.backbone();
    options.sidecar = sidecar;
    return Engine::load(options);
}

// A copy of the file with one text replaced by another of the same length.
std::string patched(const GoldenCase & golden, const std::string & from, const std::string & to) {
    std::string  bytes = test::read_bytes(golden.backbone());
    const size_t at    = bytes.find(from);
    REQUIRE(at != std::string::npos);
    REQUIRE(from.size() == to.size());
    bytes.replace(at, from.size(), to);
    const std::string path = golden.file("patched.gguf");
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
}

} // namespace

TEST_CASE("intervals of delta nets alone, of attention alone, and of both") {
    const GoldenCase golden("qwen35"); // attention at 3 and 7
    for (const auto & interval :
         { std::pair(4, 7), std::pair(0, 3), std::pair(3, 4), std::pair(7, 8), std::pair(2, 5), std::pair(0, 8) }) {
        const int start = interval.first, end = interval.second;
        CAPTURE(start);
        CAPTURE(end);
        TrainModelOptions choice = train_options_of(golden, "penelope");
        choice.init              = sidecar_on(golden, start, end);
        TrainedModel    model(choice, cpu());
        const Minibatch batch = all_examples(golden, 1);
        BatchGraphCache taped(model.objective(), model.backbone(), cpu(), &model.optimizer());
        BatchGraphCache fused(model.objective(), model.backbone(), cpu(), nullptr);
        const double    loss = taped.run(batch).mean;
        CHECK(fused.run(batch).mean == doctest::Approx(loss).epsilon(1e-5));

        const Gradients gradients = gradients_of(model);
        const double    length    = length_of(gradients);
        REQUIRE(length > 0);
        const auto slope = [&](double step) {
            return slope_along(gradients, model.optimizer(), step, [&] { return fused.run(batch).mean; });
        };
        const double step = 2e-3 / length; // far enough for F32; and twice that, so that curvature does not count
        CHECK((4 * slope(step) - slope(2 * step)) / 3 == doctest::Approx(length).epsilon(5e-3));
    }
}

TEST_CASE("computing layers again in the backward gives the same gradients") {
    const GoldenCase  golden("qwen35");
    TrainedModel      kept(train_options_of(golden, "penelope"), cpu());
    TrainModelOptions choice = train_options_of(golden, "penelope");
    choice.recompute         = true;
    TrainedModel    again(choice, cpu());
    BatchGraphCache a(kept.objective(), kept.backbone(), cpu(), &kept.optimizer());
    BatchGraphCache b(again.objective(), again.backbone(), cpu(), &again.optimizer());
    CHECK(a.run(all_examples(golden, 2)).mean == doctest::Approx(b.run(all_examples(golden, 2)).mean).epsilon(1e-6));
    for (const TrainableGroup & group : kept.groups()) {
        for (const auto & parameter : group.parameters.parameters) {
            CAPTURE(parameter.name);
            const std::vector<float> expected = kept.optimizer().gradient(parameter.name);
            CHECK(test::difference(again.optimizer().gradient(parameter.name), expected) <=
                  1e-5 * test::largest(expected));
        }
    }
}

TEST_CASE("a second turn computes its own rows only, and an edited one goes back to the turn before") {
    const GoldenCase golden("qwen35");
    const auto       engine = load(golden, "");
    GenerateOptions  options;
    options.method     = "plain";
    options.n_predict  = 6;
    options.ignore_end = true;
    const auto alone   = [&](const std::vector<int32_t> & prompt) {
        return Session(engine, f32_session()).generate(prompt, options).tokens;
    };
    Session              session(engine, f32_session());
    std::vector<int32_t> history = golden.prompt_ids(0);
    const auto           first   = session.generate(history, options).tokens;
    CHECK(first == alone(golden.prompt_ids(0)));
    history.insert(history.end(), first.begin(), first.end());
    const size_t n_turn = history.size();
    const auto   says   = [&](const std::vector<int32_t> & message) {
        std::vector<int32_t> prompt = history;
        prompt.insert(prompt.end(), message.begin(), message.end());
        return prompt;
    };
    const auto rows_of = [&](const std::vector<int32_t> & prompt) {
        const int64_t before = session.context().n_token_rows();
        CHECK(session.generate(prompt, options).tokens == alone(prompt));
        return session.context().n_token_rows() - before - (options.n_predict - 1); // decoding computes a row a token
    };
    // The last token of an answer was drawn but not computed.
    CHECK(rows_of(says({ 11, 12, 13, 14, 15 })) == 6);
    CHECK(rows_of(says({ 11, 12, 33, 34 })) == 5);              // back to the end of the first answer
    CHECK(rows_of(golden.prompt_ids(1)) > int64_t(n_turn) / 2); // something else altogether starts anew
}

TEST_CASE("a prompt that leaves the end of the one before goes back to the place that was said to last") {
    const GoldenCase golden("qwen35");
    // Latent steps in one graph, and one at a time because their number is not known or somebody looks on.
    enum class Way { plain, one_graph, until_settled, watched };
    for (const auto & [way, sidecar] :
         { std::pair(Way::plain, std::string()), std::pair(Way::one_graph, golden.sidecar()),
           std::pair(Way::until_settled, golden.sidecar()), std::pair(Way::watched, golden.sidecar()),
           std::pair(Way::one_graph, golden.coconut_sidecar()), std::pair(Way::until_settled, golden.coconut_sidecar()),
           std::pair(Way::watched, golden.coconut_sidecar()) }) {
        CAPTURE(int(way));
        CAPTURE(sidecar);
        const auto      engine = load(golden, sidecar);
        GenerateOptions options;
        options.n_steps              = way == Way::plain ? 0 : way == Way::until_settled ? kAutoSteps : 2;
        options.halt_cosine          = 0.9f;
        options.n_predict            = 4;
        const StepCallback   look    = [](const TraceStep &) { return true; };
        const StepCallback   on_step = way == Way::watched ? look : StepCallback();
        Session              session(engine, f32_session());
        std::vector<int32_t> prompt = golden.prompt_ids(0);
        prompt.insert(prompt.end(), { 31, 32, 33, 34, 35, 36 }); // fewer common rows are not worth keeping
        for (int turn = 0; turn < 3; turn++) {
            CAPTURE(turn);
            const int n_shared = options.n_stable_prefix;
            options.n_stable_prefix =
                int(prompt.size()) - 3; // the last three are the model's cue, which the history does not have
            const int64_t before = session.context().n_token_rows();
            const Answer  answer = session.generate(prompt, options, {}, on_step);
            CHECK(session.context().n_token_rows() - before - int64_t(answer.tokens.size() - 1) ==
                  int64_t(prompt.size()) - n_shared);
            GenerateOptions whole = options;
            whole.n_stable_prefix = 0;
            CHECK(answer.tokens == Session(engine, f32_session()).generate(prompt, whole, {}, on_step).tokens);
            prompt.resize(prompt.size() - 3);
            prompt.insert(prompt.end(), { 21 + turn, 22, 23, 40, 41, 42 });
        }
    }
}

TEST_CASE("Penelope goes on from the prompt's end for a longer prompt") {
    const GoldenCase golden("qwen35");
    const auto       engine = load(golden, golden.sidecar());
    GenerateOptions  options;
    options.n_steps   = 3;
    options.n_predict = 6;
    Session              session(engine, f32_session());
    std::vector<int32_t> longer = golden.prompt_ids(0);
    session.generate(longer, options);
    longer.insert(longer.end(), { 21, 22, 23 });
    const int64_t before = session.context().n_token_rows();
    const auto    tokens = session.generate(longer, options).tokens;
    CHECK(tokens == Session(engine, f32_session()).generate(longer, options).tokens);
    CHECK(session.context().n_token_rows() - before - int64_t(tokens.size() - 1) == 3);
}

TEST_CASE("what Hugging Face stores as logarithms and differences from one comes back") {
    // BF16 sources exactly, whatever is above the resolution of 1 + x in F32.
    for (float x : { 0.0f, 0.5f, -0.0078125f, 0.12109375f, -0.33203125f, 1.5f, 0.00025177f }) {
        uint32_t bits;
        std::memcpy(&bits, &x, sizeof(bits));
        bits &= 0xffff0000u;
        std::memcpy(&x, &bits, sizeof(bits));
        CAPTURE(x);
        CHECK(hf_value(ValueTransform::one_plus, gguf_value(ValueTransform::one_plus, x)) == x);
        CHECK(hf_value(ValueTransform::minus_exp, gguf_value(ValueTransform::minus_exp, x)) == x);
    }
    const GoldenCase golden("qwen35");
    ExportOptions    options;
    options.in_path  = golden.backbone();
    options.out_path = golden.file("hf");
    options.as       = "hf";
    export_sidecar(options);
    const auto written = SafetensorsReader::open(golden.file("hf/model.safetensors"));
    const auto source  = SafetensorsReader::open(golden.source("model/model.safetensors"));
    const auto config  = read_model_config(GgufReader::open(golden.backbone()));
    size_t     n_exact = 0, n_changed = 0;
    for (const TensorSpec & spec : tensors_of(config)) {
        if (spec.hf.empty() || (spec.is_optional && config.tied)) {
            continue;
        }
        CAPTURE(spec.hf);
        const auto found = written.read_f32(spec.hf), expected = source.read_f32(spec.hf);
        REQUIRE(found.size() == expected.size());
        if (spec.value == ValueTransform::same) {
            CHECK(found == expected);
            n_exact++;
            continue;
        }
        n_changed++;
        for (size_t i = 0; i < found.size(); i++) {
            CHECK(std::fabs(found[i] - expected[i]) <= std::ldexp(std::max(1.0f, std::fabs(expected[i])), -22));
        }
    }
    CHECK(n_exact == 1 + 6 * 11 + 2 * 7);
    CHECK(n_changed == 1 + 6 * 3 + 2 * 4);
}

TEST_CASE("files that are not right say so in one line") {
    const GoldenCase golden("qwen35");
    const auto       loading = [](const std::string & path) {
        return error_of([&] {
            LoadOptions options;
            options.base = path;
            Engine::load(options);
        });
    };
    CHECK(contains(loading(patched(golden, "blk.1.ssm_a", "blk.1.ssm_x")).message(), "blk.1.ssm_a"));
    const Error unknown = loading(patched(golden, "qwen35", "qwen99"));
    CHECK(contains(unknown.message(), "qwen99"));
    CHECK(contains(unknown.hint, "llama, qwen2, qwen3, qwen35"));

    // 2 key heads, 3 value heads.
    const std::string dir = golden.file("odd");
    std::filesystem::copy(golden.source("model"), dir);
    Json config                      = read_json_file(dir + "/config.json");
    config["linear_num_value_heads"] = 3;
    std::filesystem::remove(dir + "/config.json");
    std::ofstream(dir + "/config.json") << dump_json(config);
    ConvertOptions options;
    options.dir      = dir;
    options.out_path = golden.file("odd.gguf");
    CHECK(contains(error_of([&] { convert_directory(options); }).message(), "3 value heads"));
}
