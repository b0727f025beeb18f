// The C API on models in memory, and what it shows of latent steps: states, tokens, attention, layer applications.
#include "support/c_api.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

using penelope::test::ModelPtr;
using penelope::test::SessionPtr;

namespace {

const std::string folder   = PENELOPE_TEST_DIR "/../models";
const std::string base     = folder + "/thread-0.6M-Q8_0.gguf";
const std::string sidecar  = folder + "/thread-0.6M-thread-penelope-Q8_0.gguf";
const std::string question = "Bt aC rz DD bH oM VD JJ WX Fr zJ IF uu Na tu io MT PW vi HP ZN jg dB XV CI Td gb ?Z";
const std::string way      = "ZNaCIFrzJ";

// A file in memory that malloc() gave.
std::vector<char> bytes_of(const std::string & path) {
    std::ifstream file(path, std::ios::binary);
    REQUIRE(file);
    return { std::istreambuf_iterator<char>(file), {} };
}

penelope_buffer buffer_of(const std::vector<char> & bytes) {
    return { bytes.data(), bytes.size() };
}

ModelPtr load(const penelope_model_params & params) {
    penelope_model * model = nullptr;
    REQUIRE_MESSAGE(penelope_model_load(&params, &model) == PENELOPE_OK, penelope_error_message());
    return ModelPtr(model);
}

ModelPtr load_files() {
    penelope_model_params params = penelope_model_default_params();
    params.base_path             = base.c_str();
    params.sidecar_path          = sidecar.c_str();
    return load(params);
}

SessionPtr open_session(const ModelPtr & model) {
    penelope_session_params params = penelope_session_default_params();
    params.n_threads               = 1;
    penelope_session * session     = nullptr;
    REQUIRE(penelope_session_new(model.get(), &params, &session) == PENELOPE_OK);
    return SessionPtr(session);
}

std::string answer_of(const SessionPtr & session, int n_steps) {
    penelope_generate_params params = penelope_generate_default_params();
    params.n_steps                  = n_steps;
    penelope_answer answer;
    REQUIRE(penelope_generate(session.get(), question.c_str(), &params, nullptr, nullptr, &answer) == PENELOPE_OK);
    return answer.text;
}

// What is kept of a step after its callback has returned.
struct Seen {
    int                  step, layer_applications;
    float                alpha;
    std::string          said; // by the features
    std::vector<float>   memory, features;
    std::vector<float>   attention;
    std::vector<int32_t> layers;
    size_t               n_heads, n_rows, n_positions;
    float                first_norm;
};

bool keep(const penelope_trace_step * step, void * user) {
    Seen seen{};
    seen.step               = step->step;
    seen.alpha              = step->alpha;
    seen.layer_applications = step->layer_applications;
    seen.memory.assign(step->memory.states, step->memory.states + step->memory.n_rows * step->memory.n_embd);
    seen.first_norm = step->memory.norms[0];
    if (step->features.n_rows > 0) {
        seen.said = step->features.top[0].text;
        seen.features.assign(step->features.states,
                             step->features.states + step->features.n_rows * step->features.n_embd);
        CHECK(step->features.norms == nullptr);
        CHECK(step->features.cosines == nullptr);
    }
    const penelope_attention & a = step->attention;
    if (a.n_layers > 0) {
        seen.layers.assign(a.layers, a.layers + a.n_layers);
        seen.attention.assign(a.weights, a.weights + a.n_layers * a.n_heads * a.n_rows * a.n_positions);
    }
    seen.n_heads     = a.n_heads;
    seen.n_rows      = a.n_rows;
    seen.n_positions = a.n_positions;
    static_cast<std::vector<Seen> *>(user)->push_back(std::move(seen));
    return true;
}

} // namespace

TEST_CASE("a model in memory answers as the files do") {
    const std::vector<char> base_bytes = bytes_of(base), sidecar_bytes = bytes_of(sidecar);
    penelope_model_params   params = penelope_model_default_params();
    params.base                    = buffer_of(base_bytes);
    params.sidecar                 = buffer_of(sidecar_bytes);
    const SessionPtr session       = open_session(load(params)); // the bytes outlive the model and its session
    const SessionPtr reference     = open_session(load_files());
    for (const int k : { 0, 3, 8 }) {
        CHECK(answer_of(session, k) == answer_of(reference, k));
    }
    CHECK(answer_of(session, 8) == "J");
    CHECK(base_bytes == bytes_of(base)); // copied weights leave the memory they came from as it was
}

TEST_CASE("what is wrong with a file in memory is told") {
    std::vector<char>     bytes  = bytes_of(base);
    penelope_model *      model  = nullptr;
    penelope_model_params params = penelope_model_default_params();
    params.base                  = { bytes.data(), 0 };
    CHECK(penelope_model_load(&params, &model) == PENELOPE_ERROR_USAGE);
    CHECK(penelope_error_message() == std::string("params.base.size: 0 given, expected the file's size"));
    params.base = { bytes.data(), 1000 };
    CHECK(penelope_model_load(&params, &model) == PENELOPE_ERROR_FORMAT);
    CHECK(std::strstr(penelope_error_message(), "base in memory") != nullptr);
    params.base_path = "a name"; // of bytes, not of a file
    CHECK(penelope_model_load(&params, &model) == PENELOPE_ERROR_FORMAT);
    CHECK(std::strstr(penelope_error_message(), "a name") != nullptr);
    params.base = { bytes.data() + 1, bytes.size() - 1 };
    CHECK(penelope_model_load(&params, &model) == PENELOPE_ERROR_USAGE);
    CHECK(std::strstr(penelope_error_message(), "not a multiple of 8") != nullptr);
    params.base    = buffer_of(bytes);
    params.sidecar = buffer_of(bytes); // a backbone
    CHECK(penelope_model_load(&params, &model) == PENELOPE_ERROR_FORMAT);
    CHECK(std::strstr(penelope_error_message(), "sidecar in memory") != nullptr);
    CHECK(model == nullptr);
}

TEST_CASE("each latent step shows what it computed, and the attention that found it") {
    const SessionPtr         session = open_session(load_files());
    penelope_generate_params params  = penelope_generate_default_params();
    std::vector<Seen>        seen;
    penelope_answer          answer;
    params.n_steps   = 8;
    params.on_step   = keep;
    params.attention = true;
    REQUIRE(penelope_generate(session.get(), question.c_str(), &params, nullptr, &seen, &answer) == PENELOPE_OK);
    CHECK(answer.text == std::string("J"));
    REQUIRE(seen.size() == 9);
    CHECK(seen[0].attention.empty());
    CHECK(seen[0].features.empty());
    CHECK(seen[0].alpha == 0.0f);
    for (size_t t = 1; t <= 8; t++) {
        CAPTURE(t);
        const Seen & step = seen[t];
        CHECK(step.step == int(t));
        CHECK(step.said == way.substr(t, 1));
        CHECK(step.alpha > 0.5f);
        CHECK(step.alpha < 1.5f);
        CHECK(step.layers == std::vector<int32_t>{ 1, 2 });
        CHECK(step.n_heads == 4);
        CHECK(step.n_rows == 2);
        CHECK(step.n_positions == size_t(answer.n_prompt));
        CHECK(step.layer_applications == seen[t - 1].layer_applications + 2);
        CHECK(step.memory.size() == 2 * 128);
        CHECK(step.features.size() == 2 * 128);
        const double norm =
            std::sqrt(std::inner_product(step.memory.begin(), step.memory.begin() + 128, step.memory.begin(), 0.0));
        CHECK(double(step.first_norm) == doctest::Approx(norm));
        // docs/tour.md: head 3 of layer 1 looks at the letter the step goes to. The position of a letter is one further
        // than in the text, because of BOS.
        const auto   head3 = step.attention.begin() + 3 * 2 * ptrdiff_t(step.n_positions);
        const auto   best  = std::max_element(head3, head3 + ptrdiff_t(step.n_positions));
        const size_t edge  = question.find(way.substr(t - 1, 2));
        CHECK(size_t(best - head3) == edge + 2);
        CHECK(*best > 0.9f);
        for (size_t row = 0; row < 2 * 4 * 2; row++) {
            const auto   first = step.attention.begin() + ptrdiff_t(row * step.n_positions);
            const double sum   = std::accumulate(first, first + ptrdiff_t(step.n_positions), 0.0);
            CHECK(sum <= 1.0 + 1e-4);
            CHECK(*std::min_element(first, first + ptrdiff_t(step.n_positions)) >= 0.0f);
        }
    }
    CHECK(answer.layer_applications == seen[8].layer_applications + 2); // the final pass of two layers

    // penelope_trace() shows the same and writes no answer.
    std::vector<Seen> traced;
    REQUIRE(penelope_trace(session.get(), question.c_str(), &params, keep, &traced) == PENELOPE_OK);
    REQUIRE(traced.size() == 9);
    CHECK(traced[8].memory == seen[8].memory);
    CHECK(traced[8].attention == seen[8].attention);

    // Attention only where it was asked for, and looking changes nothing.
    seen.clear();
    params.attention = false;
    REQUIRE(penelope_generate(session.get(), question.c_str(), &params, nullptr, &seen, &answer) == PENELOPE_OK);
    CHECK(seen[8].attention.empty());
    CHECK(seen[8].memory == traced[8].memory);
}

TEST_CASE("the callback of latent steps ends them early") {
    const SessionPtr         session = open_session(load_files());
    penelope_generate_params params  = penelope_generate_default_params();
    penelope_answer          answer;
    params.n_steps = 8;
    params.on_step = [](const penelope_trace_step * step, void *) { return step->step < 3; };
    REQUIRE(penelope_generate(session.get(), question.c_str(), &params, nullptr, nullptr, &answer) == PENELOPE_OK);
    CHECK(answer.n_steps == 3);
    CHECK(answer.text == answer_of(session, 3));

    penelope_model_params only_base = penelope_model_default_params();
    only_base.base_path             = base.c_str();
    const SessionPtr plain          = open_session(load(only_base));
    params.n_steps                  = -1;
    CHECK(penelope_generate(plain.get(), question.c_str(), &params, nullptr, nullptr, &answer) == PENELOPE_ERROR_USAGE);
}
