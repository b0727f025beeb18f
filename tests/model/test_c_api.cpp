// The C API: answers as the reference gives them, what it says of wrong arguments, stopping, and sessions on several
// threads.
#include "support/c_api.h"
#include "support/golden.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using penelope::test::GoldenCase;
using penelope::test::ModelPtr;
using penelope::test::SessionPtr;

namespace {

ModelPtr load(const GoldenCase & golden, bool with_sidecar = true) {
    const std::string     base    = golden.backbone();
    const std::string     sidecar = golden.sidecar();
    penelope_model_params params  = penelope_model_default_params();
    params.base_path              = base.c_str();
    params.sidecar_path           = with_sidecar ? sidecar.c_str() : nullptr;
    penelope_model * model        = nullptr;
    REQUIRE_MESSAGE(penelope_model_load(&params, &model) == PENELOPE_OK, penelope_error_message());
    return ModelPtr(model);
}

SessionPtr open_session(const ModelPtr & model) {
    penelope_session_params params = penelope_session_default_params();
    params.kv_type                 = PENELOPE_KV_F32;
    params.n_threads               = 1;
    penelope_session * session     = nullptr;
    REQUIRE_MESSAGE(penelope_session_new(model.get(), &params, &session) == PENELOPE_OK, penelope_error_message());
    return SessionPtr(session);
}

std::string question(const GoldenCase & golden, size_t example) {
    std::string prompt = golden.prompt(example);
    prompt.pop_back(); // the template puts the newline back
    return prompt;
}

std::vector<int32_t> tokens_of(const penelope_answer & answer) {
    return { answer.tokens, answer.tokens + answer.n_tokens };
}

} // namespace

TEST_CASE("answers, counts and facts are those of the reference") {
    const GoldenCase golden("last");
    const ModelPtr   model   = load(golden);
    const SessionPtr session = open_session(model);

    penelope_model_info info;
    REQUIRE(penelope_model_get_info(model.get(), &info) == PENELOPE_OK);
    CHECK(info.method == std::string("penelope"));
    CHECK(info.type == std::string("F32"));
    CHECK(info.device == std::string("CPU"));
    CHECK(info.n_layers == 6);
    CHECK(info.n_embd == 64);
    CHECK(info.n_vocab == 439);
    CHECK(info.n_ctx_max == 512);
    CHECK(info.k_default == 3);
    CHECK(info.k_max == 8);

    for (const int k : { 0, 1, 3, 6 }) {
        penelope_generate_params params = penelope_generate_default_params();
        params.n_steps                  = k;
        params.n_predict                = 12;
        std::string     streamed;
        penelope_answer answer;
        const auto      append = [](const char * text, size_t size, int32_t, void * user) {
            CHECK(text[size] == '\0');
            static_cast<std::string *>(user)->append(text, size);
            return true;
        };
        REQUIRE(penelope_generate(session.get(), question(golden, 1).c_str(), &params, append, &streamed, &answer) ==
                PENELOPE_OK);
        const std::vector<int32_t> expected = golden.greedy(k, 1);
        CHECK(tokens_of(answer) == expected);
        CHECK(answer.text == streamed);
        CHECK(answer.text_size == streamed.size());
        CHECK(answer.layer_applications == golden.layer_applications(k));
        CHECK(answer.n_steps == k);
        CHECK(answer.finish == PENELOPE_FINISH_LENGTH);
        CHECK(answer.n_prompt == static_cast<int>(golden.prompt_ids(1).size()));
    }
}

TEST_CASE("every latent method is called by its name") {
    const GoldenCase golden("last");
    for (const auto & [sidecar, method] :
         { std::pair(golden.coconut_sidecar(), "coconut"), std::pair(golden.codi_sidecar(), "codi") }) {
        const std::string     base   = golden.backbone();
        penelope_model_params params = penelope_model_default_params();
        params.base_path             = base.c_str();
        params.sidecar_path          = sidecar.c_str();
        penelope_model * model       = nullptr;
        REQUIRE(penelope_model_load(&params, &model) == PENELOPE_OK);
        const ModelPtr      owner(model);
        penelope_model_info info;
        REQUIRE(penelope_model_get_info(model, &info) == PENELOPE_OK);
        CHECK(info.method == std::string(method));
    }
}

TEST_CASE("raw prompts pass the template by") {
    const GoldenCase         golden("last");
    const SessionPtr         session = open_session(load(golden));
    penelope_generate_params params  = penelope_generate_default_params();
    params.n_predict                 = 3;
    penelope_answer answer;
    REQUIRE(penelope_generate(session.get(), question(golden, 1).c_str(), &params, nullptr, nullptr, &answer) ==
            PENELOPE_OK);
    const std::vector<int32_t> templated = tokens_of(answer);
    params.raw                           = true;
    REQUIRE(penelope_generate(session.get(), (question(golden, 1) + "\n").c_str(), &params, nullptr, nullptr,
                              &answer) == PENELOPE_OK);
    CHECK(tokens_of(answer) == templated);
}

TEST_CASE("a session outlives the model it was made from, and defaults do without parameters") {
    const GoldenCase   golden("last");
    ModelPtr           model   = load(golden, false);
    penelope_session * created = nullptr;
    REQUIRE(penelope_session_new(model.get(), nullptr, &created) == PENELOPE_OK);
    const SessionPtr session(created);
    model.reset();
    size_t     n_calls = 0;
    const auto stop    = [](const char *, size_t, int32_t, void * user) { return ++*static_cast<size_t *>(user) < 4; };
    penelope_answer answer;
    REQUIRE(penelope_generate(session.get(), "Tom is a", nullptr, stop, &n_calls, &answer) == PENELOPE_OK);
    CHECK(n_calls == 4);
    CHECK(answer.n_tokens == 4);
    CHECK(answer.n_steps == 0);
    CHECK(answer.finish == PENELOPE_FINISH_CANCELLED);
    CHECK(penelope_session_clear(session.get()) == PENELOPE_OK);
}

TEST_CASE("cancelling from another thread ends an answer") {
    const GoldenCase  golden("last");
    const SessionPtr  session = open_session(load(golden, false));
    std::atomic<bool> started{ false };
    std::thread       canceller([&] {
        while (!started) {
            std::this_thread::yield();
        }
        penelope_session_cancel(session.get());
    });
    // Slow enough for the other thread to come in before the context is full.
    const auto notice = [](const char *, size_t, int32_t, void * user) {
        static_cast<std::atomic<bool> *>(user)->store(true);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return true;
    };
    penelope_answer       answer;
    const penelope_status status = penelope_generate(session.get(), "Tom is a", nullptr, notice, &started, &answer);
    canceller.join();
    REQUIRE(status == PENELOPE_OK);
    CHECK(answer.finish == PENELOPE_FINISH_CANCELLED);
    // And the session goes on.
    penelope_generate_params params = penelope_generate_default_params();
    params.n_predict                = 2;
    REQUIRE(penelope_generate(session.get(), "Tom is a", &params, nullptr, nullptr, &answer) == PENELOPE_OK);
    CHECK(answer.n_tokens == 2);
    penelope_session_cancel(nullptr);
}

TEST_CASE("a cancel that comes before the call ends it, and no other") {
    const GoldenCase         golden("last");
    const SessionPtr         session = open_session(load(golden));
    const std::string        prompt  = question(golden, 1);
    penelope_generate_params params  = penelope_generate_default_params();
    params.n_predict                 = 3;
    penelope_answer answer;
    const auto      generate = [&](penelope_token_callback on_token) {
        REQUIRE(penelope_generate(session.get(), prompt.c_str(), &params, on_token, session.get(), &answer) ==
                     PENELOPE_OK);
        return answer.finish;
    };
    penelope_session_cancel(session.get());
    CHECK(generate(nullptr) == PENELOPE_FINISH_CANCELLED);
    CHECK(answer.n_tokens == 0);
    CHECK(generate(nullptr) == PENELOPE_FINISH_LENGTH);

    // A call that fails before it computes anything leaves it to the next one.
    penelope_session_cancel(session.get());
    CHECK(penelope_generate(session.get(), "", &params, nullptr, nullptr, &answer) == PENELOPE_ERROR_USAGE);
    CHECK(generate(nullptr) == PENELOPE_FINISH_CANCELLED);

    // One that comes with the last token is too late for this answer and ends the next, unless it is dropped.
    const auto cancel_each = [](const char *, size_t, int32_t, void * user) {
        penelope_session_cancel(static_cast<penelope_session *>(user));
        return true;
    };
    params.n_predict = 1;
    CHECK(generate(cancel_each) == PENELOPE_FINISH_LENGTH);
    CHECK(generate(nullptr) == PENELOPE_FINISH_CANCELLED);
    CHECK(generate(cancel_each) == PENELOPE_FINISH_LENGTH);
    penelope_session_reset_cancel(session.get());
    CHECK(generate(nullptr) == PENELOPE_FINISH_LENGTH);
    penelope_session_reset_cancel(nullptr);

    const auto count = [](const penelope_trace_step *, void * user) {
        ++*static_cast<int *>(user);
        return true;
    };
    int n_steps = 0;
    penelope_session_cancel(session.get());
    CHECK(penelope_trace(session.get(), prompt.c_str(), nullptr, count, &n_steps) == PENELOPE_ERROR_CANCELLED);
    CHECK(n_steps == 0);
    CHECK(penelope_trace(session.get(), prompt.c_str(), nullptr, count, &n_steps) == PENELOPE_OK);
    CHECK(n_steps > 0);
}

TEST_CASE("a cancel at any moment ends the call") {
    const GoldenCase golden("last");
    const SessionPtr session = open_session(load(golden, false));
    const auto       slowly  = [](const char *, size_t, int32_t, void *) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return true;
    };
    std::string prompt; // takes a while to tokenize
    while (prompt.size() < 400) {
        prompt += "Tom is a ";
    }
    for (int round = 0; round < 40; round++) {
        std::atomic<bool> begun{ false };
        std::thread       canceller([&] {
            while (!begun) {
                std::this_thread::yield();
            }
            std::this_thread::sleep_for(std::chrono::microseconds(20 * round));
            penelope_session_cancel(session.get());
        });
        begun = true;
        penelope_answer       answer;
        const penelope_status status =
            penelope_generate(session.get(), prompt.c_str(), nullptr, slowly, nullptr, &answer);
        canceller.join();
        REQUIRE(status == PENELOPE_OK);
        CHECK(answer.finish == PENELOPE_FINISH_CANCELLED);
    }
}

TEST_CASE("wrong arguments and files are told, never thrown") {
    const GoldenCase golden("last");
    penelope_model * model = reinterpret_cast<penelope_model *>(1);

    penelope_model_params params = penelope_model_default_params();
    CHECK(penelope_model_load(&params, &model) == PENELOPE_ERROR_USAGE);
    CHECK(model == nullptr);
    CHECK(penelope_error_message() == std::string("params.base_path: NULL given"));
    CHECK(penelope_model_load(nullptr, &model) == PENELOPE_ERROR_USAGE);
    CHECK(penelope_model_load(&params, nullptr) == PENELOPE_ERROR_USAGE);
    params.base_path = "/nonexistent/model.gguf";
    CHECK(penelope_model_load(&params, &model) == PENELOPE_ERROR_NOT_FOUND);
    CHECK(std::strstr(penelope_error_message(), "/nonexistent/model.gguf") != nullptr);
    const std::string config = golden.source("model/config.json");
    params.base_path         = config.c_str();
    CHECK(penelope_model_load(&params, &model) == PENELOPE_ERROR_FORMAT);
    const std::string base = golden.backbone();
    params.base_path       = base.c_str();
    params.device          = "nowhere";
    CHECK(penelope_model_load(&params, &model) == PENELOPE_ERROR_DEVICE);
    CHECK(std::string(penelope_error_hint()) != "");
    params.device               = "CPU";
    const penelope_lora missing = { "/nonexistent/lora.gguf", 1.0f };
    params.loras                = &missing;
    params.n_loras              = 1;
    CHECK(penelope_model_load(&params, &model) == PENELOPE_ERROR_NOT_FOUND);

    const ModelPtr          loaded         = load(golden);
    penelope_session_params session_params = penelope_session_default_params();
    penelope_session *      session        = nullptr;
    session_params.n_ctx                   = 100000;
    CHECK(penelope_session_new(loaded.get(), &session_params, &session) == PENELOPE_ERROR_USAGE);
    session_params.n_ctx     = 0;
    session_params.n_threads = 100000;
    CHECK(penelope_session_new(loaded.get(), &session_params, &session) == PENELOPE_ERROR_USAGE);
    session_params.n_threads = 0;
    session_params.n_ctx     = -1;
    CHECK(penelope_session_new(loaded.get(), &session_params, &session) == PENELOPE_ERROR_USAGE);
    CHECK(penelope_session_new(nullptr, nullptr, &session) == PENELOPE_ERROR_USAGE);
    CHECK(session == nullptr);

    const SessionPtr         good   = open_session(loaded);
    penelope_generate_params wanted = penelope_generate_default_params();
    penelope_answer          answer;
    wanted.n_steps = 9;
    CHECK(penelope_generate(good.get(), "x", &wanted, nullptr, nullptr, &answer) == PENELOPE_ERROR_USAGE);
    CHECK(answer.text == nullptr);
    wanted.n_steps = -2;
    CHECK(penelope_generate(good.get(), "x", &wanted, nullptr, nullptr, &answer) == PENELOPE_ERROR_USAGE);
    wanted.n_steps   = 1;
    wanted.n_predict = -2;
    CHECK(penelope_generate(good.get(), "x", &wanted, nullptr, nullptr, &answer) == PENELOPE_ERROR_USAGE);
    CHECK(penelope_error_message() == std::string("n_predict: -2 given, expected -1 or more"));
    wanted.n_predict = 1;
    CHECK(penelope_generate(good.get(), "", &wanted, nullptr, nullptr, &answer) == PENELOPE_ERROR_USAGE);
    CHECK(penelope_generate(good.get(), nullptr, &wanted, nullptr, nullptr, &answer) == PENELOPE_ERROR_USAGE);
    CHECK(penelope_generate(good.get(), std::string(5000, 'x').c_str(), &wanted, nullptr, nullptr, &answer) ==
          PENELOPE_ERROR_USAGE);
    wanted.temperature = -1.0f;
    CHECK(penelope_generate(good.get(), "x", &wanted, nullptr, nullptr, &answer) == PENELOPE_ERROR_USAGE);
    wanted.temperature = 0.0f;
    wanted.method      = "magic";
    CHECK(penelope_generate(good.get(), "x", &wanted, nullptr, nullptr, &answer) == PENELOPE_ERROR_USAGE);

    penelope_model_free(nullptr);
    penelope_session_free(nullptr);
    CHECK(penelope_status_name(PENELOPE_ERROR_NOT_FOUND) == std::string("not_found"));
    CHECK(std::string(penelope_version()) != "");
    CHECK(std::strstr(penelope_ggml_version(), "CPU") != nullptr);
}

TEST_CASE("errors belong to the thread that made them") {
    penelope_model * model = nullptr;
    CHECK(penelope_model_load(nullptr, &model) == PENELOPE_ERROR_USAGE);
    std::string elsewhere = "not asked";
    std::thread([&] { elsewhere = penelope_error_message(); }).join();
    CHECK(elsewhere == "");
    CHECK(penelope_error_message() == std::string("params: NULL given"));
}

TEST_CASE("a trace shows each step") {
    const GoldenCase         golden("last");
    const ModelPtr           model   = load(golden);
    const SessionPtr         session = open_session(model);
    penelope_generate_params params  = penelope_generate_default_params();
    params.n_steps                   = 2;
    std::vector<int> seen;
    const auto       look = [](const penelope_trace_step * step, void * user) {
        static_cast<std::vector<int> *>(user)->push_back(step->step);
        CHECK(step->memory.n_rows == 8);
        CHECK(step->readout.n_rows == 2);
        CHECK(step->memory.n_top == 5);
        CHECK((step->memory.cosines == nullptr) == (step->step == 0));
        CHECK(step->memory.norms[0] > 0.0f);
        for (size_t row = 0; row < step->memory.n_rows; ++row) {
            const penelope_token_score * top = step->memory.top + row * step->memory.n_top;
            CHECK(top[0].logit >= top[4].logit);
            CHECK(top[0].text != nullptr);
        }
        return true;
    };
    REQUIRE(penelope_trace(session.get(), question(golden, 1).c_str(), &params, look, &seen) == PENELOPE_OK);
    CHECK(seen == std::vector<int>{ 0, 1, 2 });

    seen.clear();
    const auto once = [](const penelope_trace_step * step, void * user) {
        static_cast<std::vector<int> *>(user)->push_back(step->step);
        return false;
    };
    REQUIRE(penelope_trace(session.get(), "x", nullptr, once, &seen) == PENELOPE_OK);
    CHECK(seen.size() == 1);

    const SessionPtr plain = open_session(load(golden, false));
    CHECK(penelope_trace(plain.get(), "x", nullptr, once, &seen) == PENELOPE_ERROR_USAGE);
    CHECK(penelope_trace(session.get(), "x", nullptr, nullptr, nullptr) == PENELOPE_ERROR_USAGE);
}

TEST_CASE("sessions on several threads share one model") {
    const GoldenCase golden("last");
    const ModelPtr   model   = load(golden);
    const int        steps[] = { 0, 1, 3, 6 };

    std::vector<std::vector<int32_t>> answers(4);
    std::vector<std::thread>          threads;
    std::vector<std::string>          errors(4);
    for (size_t i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
            penelope_session_params session_params = penelope_session_default_params();
            session_params.kv_type                 = PENELOPE_KV_F32;
            session_params.n_threads               = 1;
            penelope_session * session             = nullptr;
            if (penelope_session_new(model.get(), &session_params, &session) != PENELOPE_OK) {
                errors[i] = penelope_error_message();
                return;
            }
            const SessionPtr owner(session);
            for (int round = 0; round < 3; ++round) {
                penelope_generate_params params = penelope_generate_default_params();
                params.n_steps                  = steps[i];
                params.n_predict                = 12;
                penelope_answer answer;
                if (penelope_generate(session, question(golden, 1).c_str(), &params, nullptr, nullptr, &answer) !=
                    PENELOPE_OK) {
                    errors[i] = penelope_error_message();
                    return;
                }
                answers[i] = tokens_of(answer);
            }
        });
    }
    for (std::thread & thread : threads) {
        thread.join();
    }
    for (size_t i = 0; i < 4; ++i) {
        const std::vector<int32_t> expected = golden.greedy(steps[i], 1);
        CHECK(errors[i] == "");
        CHECK(answers[i] == expected);
    }
}
