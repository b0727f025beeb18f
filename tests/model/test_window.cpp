// Layers with a sliding window: what the rows of a sequence see, memory rows included, and what the cache keeps.
#include <doctest/doctest.h>

#include "infer/session.h"
#include "method/decode.h"
#include "support/golden.h"

#include <algorithm>

using namespace penelope;
using penelope::test::GoldenCase;

namespace {

constexpr int kWindow = 12, kLayers = 4, kPrompt = 70;
// All layers of the case have the window: a row depends on this many positions before it and on none farther back.
constexpr int kReach = kLayers * (kWindow - 1);

Tokens prompt_with(int position, int32_t token) {
    Tokens tokens;
    for (int i = 0; i < kPrompt; i++) {
        tokens.push_back(i * 5 % 400);
    }
    tokens[size_t(position)] = token;
    return tokens;
}

Session session_of(const GoldenCase & golden) {
    LoadOptions options;
    options.base    = golden.backbone();
    options.sidecar = golden.sidecar();
    SessionOptions session;
    session.n_ctx   = 128;
    session.kv_type = GGML_TYPE_F32;
    return Session(Engine::load(options), session);
}

} // namespace

TEST_CASE("a row sees as far back as its window, whoever reads it") {
    const GoldenCase golden("phi3");
    Session          session = session_of(golden);
    REQUIRE(session.engine().config().window == kWindow);
    int        applications = 0;
    const auto read         = [&](const Tokens & tokens) { // with the last row in the batch, and alone
        const Tokens front(tokens.begin(), tokens.end() - 1);
        auto         rows = prefill(session.context(), { { tokens, 0, 0 } }, applications);
        prefill(session.context(), { { front, 0, 0 } }, applications);
        rows.push_back(decode(session.context(), { { 0, kPrompt - 1, tokens.back() } })[0]);
        return rows;
    };
    const int first = kPrompt - 1 - kReach; // the farthest position that the last row depends on
    CHECK(read(prompt_with(first - 1, 7)) == read(prompt_with(first - 1, 300)));
    CHECK(read(prompt_with(first + 4, 7)) != read(prompt_with(first + 4, 300)));
}

TEST_CASE("memory rows see the end of the prompt by position, however many steps they take") {
    const GoldenCase golden("phi3");
    Session          session = session_of(golden);
    const auto       states  = [&](int position, int32_t token, int n_steps) {
        std::vector<std::vector<float>> found;
        for (const StateTensor & state : session.dump(prompt_with(position, token), n_steps)) {
            if (state.name[0] == 'M' || state.name == "interface_out") {
                found.push_back(state.data);
            }
        }
        return found;
    };
    // The first memory row is at position kPrompt. A latent step goes through the same layers at the same positions, so
    // the reach does not grow with K.
    for (int n_steps : { 0, 1, 6 }) {
        CAPTURE(n_steps);
        CHECK(states(kPrompt - kReach - 1, 7, n_steps) == states(kPrompt - kReach - 1, 300, n_steps));
        CHECK(states(kPrompt - kReach + 8, 7, n_steps) != states(kPrompt - kReach + 8, 300, n_steps));
    }
}

TEST_CASE("the prompt cache keeps every position, and latent steps leave it as it is") {
    const GoldenCase golden("phi3");
    const auto       kept = [&](int n_steps) {
        Session         session = session_of(golden);
        GenerateOptions options;
        options.n_steps   = n_steps;
        options.n_predict = 1;
        session.generate(prompt_with(0, 3), options);
        return session.context().cache().bytes(2, 0, kPrompt); // layer 2 is in the interval
    };
    const std::vector<uint8_t> one = kept(1), six = kept(6);
    CHECK(one == six);
    const size_t row = one.size() / (2 * kPrompt);
    for (int i = 0; i < kPrompt; i++) {
        CHECK(std::any_of(one.begin() + ptrdiff_t(row) * i, one.begin() + ptrdiff_t(row) * (i + 1),
                          [](uint8_t byte) { return byte != 0; }));
    }
}
