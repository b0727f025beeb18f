// A real pretrained model against transformers: logits and greedy answers on the quantized file and on its F32 copy,
// and the same logits however the prompt is cut.
#include <doctest/doctest.h>

#include "base/json.h"
#include "convert/convert.h"
#include "infer/session.h"
#include "method/decode.h"
#include "support/difference.h"
#include "support/files.h"
#include "support/temp_dir.h"
#include "text/tokenizer.h"

#include <cmath>
#include <numeric>
#include <thread>

using namespace penelope;

namespace {

Json expected() {
    return read_json_file(std::string(PENELOPE_TEST_DIR) + "/golden/smollm2/expected.json");
}

std::shared_ptr<const Engine> load(const std::string & path, bool repack = true) {
    LoadOptions options;
    options.base   = path;
    options.repack = repack;
    return Engine::load(options);
}

// The quantized file with its weights dequantized.
std::string write_f32_copy(const test::TempDir & dir) {
    QuantizeOptions to_f32;
    to_f32.in_path          = test::smollm2_path();
    to_f32.out_path         = dir.file("f32.gguf");
    to_f32.type             = "F32";
    to_f32.allow_requantize = true;
    quantize_file(to_f32);
    return to_f32.out_path;
}

SessionOptions session_options(ggml_type kv_type, int n_batch = 512) {
    SessionOptions options;
    options.n_ctx   = 256;
    options.kv_type = kv_type;
    options.n_batch = n_batch;
    return options;
}

std::vector<float> last_logits(Session & session, const Tokens & prompt) {
    int applications = 0;
    return prefill(session.context(), fresh_prompts({ prompt }), applications)[0];
}

struct TopTen {
    test::Difference worst; // over the ten best tokens of every case
    test::Difference
        shifted; // the same after taking out the shift common to a case's ten, which changes no probability
};

TopTen compare_top_ten(Session & session, const Json & cases) {
    TopTen result;
    for (const Json & c : cases) {
        const std::vector<float> logits   = last_logits(session, c["ids"].get<Tokens>());
        const auto               expected = c["top_logits"].get<std::vector<float>>();
        std::vector<float>       found, shifted;
        float                    shift = 0;
        for (size_t i = 0; i < expected.size(); i++) {
            found.push_back(logits.at(c["top_ids"][i].get<size_t>()));
            shift += (found[i] - expected[i]) / float(expected.size());
        }
        for (float value : found) {
            shifted.push_back(value - shift);
        }
        result.worst   = worse(result.worst, test::difference(found, expected));
        result.shifted = worse(result.shifted, test::difference(shifted, expected));
    }
    return result;
}

// Greedy answers agree until the reference itself was nearly undecided.
void check_greedy(Session & session, const Json & cases) {
    GenerateOptions options;
    options.n_predict = 24;
    for (const Json & c : cases) {
        CAPTURE(c["prompt"].get<std::string>());
        const Answer answer  = session.generate(c["ids"].get<Tokens>(), options);
        const Tokens greedy  = c["greedy_ids"];
        const auto   margins = c["greedy_margins"].get<std::vector<float>>();
        for (size_t i = 0; i < greedy.size() && margins[i] > 0.5f; i++) {
            REQUIRE(i < answer.tokens.size());
            CHECK(answer.tokens[i] == greedy[i]);
        }
    }
}

} // namespace

TEST_CASE("the quantized file: top ten logits and greedy tokens" * doctest::skip(test::lacks_smollm2())) {
    const auto   engine = load(test::smollm2_path(), false); // ggml's kernels; those of packed weights are below
    const Json   cases  = expected()["cases"];
    Session      session(engine, session_options(GGML_TYPE_F16));
    const TopTen top = compare_top_ten(session, cases);
    MESSAGE("ten best logits differ by " << top.worst << ", without the common shift by " << top.shifted);
    // The kernels round activations to 8 bits; most of what that does to a row of logits is to move all of it.
    CHECK(top.shifted < 0.35f);
    CHECK(top.worst < 0.8f);
    check_greedy(session, cases);
    for (const Json & c : cases) {
        CHECK(engine->tokenizer().encode(c["prompt"].get<std::string>(), { true, true }) == c["ids"].get<Tokens>());
    }
}

TEST_CASE("dequantized to F32: top ten logits within 2e-4, any cut of the prompt within 1e-4" *
          doctest::skip(test::lacks_smollm2())) {
    const test::TempDir dir;
    const std::string   f32_path = write_f32_copy(dir);

    const auto   engine = load(f32_path);
    const Json   cases  = expected()["cases"];
    Session      whole(engine, session_options(GGML_TYPE_F32));
    const TopTen top = compare_top_ten(whole, cases);
    MESSAGE("ten best logits differ by " << top.worst);
    CHECK(top.worst < 2e-4f); // the reference is written with four decimals, and processors sum in different orders
    check_greedy(whole, cases);

    const Tokens             prompt = cases[4]["ids"];
    const std::vector<float> single = last_logits(whole, prompt);
    Session                  chunked(engine, session_options(GGML_TYPE_F32, 7));
    CHECK(test::difference(last_logits(chunked, prompt), single) < 1e-4f);
    Session one_by_one(engine, session_options(GGML_TYPE_F32, 1));
    CHECK(test::difference(last_logits(one_by_one, prompt), single) < 1e-4f);
}

namespace {

// Root mean square of a - b over all logits after every token of the prompts. What is common to a row is taken out: it
// changes no probability.
double rms_difference(Session & a, Session & b, const std::vector<Tokens> & prompts) {
    double sum = 0.0;
    size_t n   = 0;
    for (const Tokens & prompt : prompts) {
        for (size_t length = 1; length <= prompt.size(); length++) {
            const Tokens             part(prompt.begin(), prompt.begin() + long(length));
            const std::vector<float> left = last_logits(a, part), right = last_logits(b, part);
            double                   mean = 0.0;
            for (size_t i = 0; i < left.size(); i++) {
                mean += double(left[i] - right[i]) / double(left.size());
            }
            for (size_t i = 0; i < left.size(); i++) {
                sum += std::pow(double(left[i] - right[i]) - mean, 2);
            }
            n += left.size();
        }
    }
    return std::sqrt(sum / double(n));
}

} // namespace

// Both kernels round activations to 8 bits. The errors of one row are chance, so many rows are compared.
TEST_CASE("packed weights are as close to F32 as ggml's kernels" * doctest::skip(test::lacks_smollm2())) {
    const test::TempDir dir;
    const std::string   f32_path = write_f32_copy(dir);
    Session             exact(load(f32_path), session_options(GGML_TYPE_F32));
    Session             plain(load(test::smollm2_path(), false), session_options(GGML_TYPE_F32));
    Session             packed(load(test::smollm2_path()), session_options(GGML_TYPE_F32));

    const Json          cases = expected()["cases"];
    std::vector<Tokens> prompts;
    for (size_t i = 0; i < 4; i++) {
        prompts.push_back(cases[i]["ids"].get<Tokens>());
    }
    const double of_plain = rms_difference(plain, exact, prompts), of_packed = rms_difference(packed, exact, prompts);
    MESSAGE("logits differ from F32 by " << of_plain << " (ggml) and " << of_packed << " (packed)");
    CHECK(of_packed < 1.15 * of_plain);
    check_greedy(packed, cases);
}

TEST_CASE("sessions of one engine on several threads answer alike" * doctest::skip(test::lacks_smollm2())) {
    const auto      engine = load(test::smollm2_path());
    const Tokens    prompt = expected()["cases"][0]["ids"];
    GenerateOptions options;
    options.n_predict = 8;
    std::vector<Tokens>      answers(3);
    std::vector<std::thread> threads;
    for (Tokens & answer : answers) {
        threads.emplace_back([&]() {
            SessionOptions small = session_options(GGML_TYPE_F16);
            small.n_threads      = 1;
            Session session(engine, small);
            answer = session.generate(prompt, options).tokens;
        });
    }
    for (std::thread & thread : threads) {
        thread.join();
    }
    CHECK(answers[0].size() == 8);
    CHECK(answers[0] == answers[1]);
    CHECK(answers[0] == answers[2]);
}
