// Penalties on what an answer already said, and what they leave alone; draws from the whole vocabulary.
#include "infer/sampler.h"

#include "base/rng.h"
#include "support/errors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <ctime>

using namespace penelope;

namespace {

int32_t after(const SamplingOptions & options, const std::vector<int32_t> & said, const std::vector<float> & logits) {
    Sampler sampler(options);
    for (const int32_t token : said) {
        sampler.accept(token);
    }
    return sampler.sample(logits.data(), int(logits.size()));
}

std::vector<float> random_logits(size_t n, uint64_t seed, float scale) {
    Rng                rng(seed);
    std::vector<float> logits;
    for (size_t i = 0; i < n; i++) {
        logits.push_back(scale * float(rng.normal()));
    }
    return logits;
}

// The n-th draw as the definition says: all candidates in order, best first, and sums from the front.
int32_t sorted_draw(const SamplingOptions & o, const std::vector<float> & logits, uint64_t n) {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < logits.size(); i++) {
        if (logits[i] > -INFINITY) {
            ids.push_back(int32_t(i));
        }
    }
    const auto logit = [&](size_t place) { return double(logits[size_t(ids[place])]); };
    std::sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
        return logits[size_t(a)] != logits[size_t(b)] ? logits[size_t(a)] > logits[size_t(b)] : a < b;
    });
    if (o.top_k > 0 && size_t(o.top_k) < ids.size()) {
        ids.resize(size_t(o.top_k));
    }
    double total = 0, sum = 0, left = 0;
    for (size_t i = 0; i < ids.size(); i++) {
        total += std::exp(logit(i) - logit(0));
    }
    size_t n_cached = 0;
    while (n_cached < ids.size() && (o.top_p == 1.0f || sum < double(o.top_p) * total) &&
           std::exp(logit(n_cached) - logit(0)) >= double(o.min_p)) {
        sum += std::exp(logit(n_cached++) - logit(0));
    }
    const auto weight = [&](size_t place) { return std::exp((logit(place) - logit(0)) / double(o.temperature)); };
    for (size_t i = 0; i < n_cached; i++) {
        left += weight(i);
    }
    double draw  = Rng(o.seed, stream_id("sample", n)).uniform() * left;
    size_t place = 0;
    while (place + 1 < n_cached && draw >= weight(place)) {
        draw -= weight(place++);
    }
    return ids[place];
}

} // namespace

TEST_CASE("draws are those of candidates in order, best first") {
    for (const float scale : { 0.1f, 1.0f, 4.0f }) {
        std::vector<float> logits = random_logits(3000, 5, scale);
        logits[7] = logits[2000] = logits[1000]; // equals
        for (size_t i = 100; i < 150; i++) {
            logits[i] = -INFINITY;
        }
        for (const int top_k : { 0, 1, 40, 700, 5000 }) {
            for (const float top_p : { 0.3f, 0.95f, 1.0f }) {
                for (const float min_p : { 0.0f, 0.05f, 1.0f }) {
                    for (const float temperature : { 0.3f, 1.0f, 30.0f }) {
                        SamplingOptions options;
                        options.temperature = temperature;
                        options.top_k       = top_k;
                        options.top_p       = top_p;
                        options.min_p       = min_p;
                        options.seed        = 11;
                        Sampler sampler(options);
                        CAPTURE(scale);
                        CAPTURE(top_k);
                        CAPTURE(top_p);
                        CAPTURE(min_p);
                        CAPTURE(temperature);
                        for (uint64_t n = 0; n < 5; n++) {
                            CHECK(sampler.sample(logits.data(), int(logits.size())) == sorted_draw(options, logits, n));
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("a draw from a large vocabulary costs little more than one from the best few") {
    const std::vector<float> logits = random_logits(150000, 5, 3.0f);
    // Of this thread alone: the machine may be busy.
    const auto cpu_ms = [] {
        timespec now{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return double(now.tv_sec) * 1e3 + double(now.tv_nsec) * 1e-6;
    };
    const auto least_ms = [&](int top_k) {
        SamplingOptions options;
        options.temperature = 0.7f;
        options.top_k       = top_k;
        Sampler sampler(options);
        double  least = 1e9;
        for (int i = 0; i < 8; i++) {
            const double before = cpu_ms();
            sampler.sample(logits.data(), int(logits.size()));
            least = std::min(least, cpu_ms() - before);
        }
        return least;
    };
    CHECK(least_ms(0) < 6 * least_ms(40)); // sorting takes 20 times as long
}

TEST_CASE("a cut that is reached exactly ends there") {
    SamplingOptions options;
    options.temperature = 1;
    options.top_k       = 0;
    options.top_p       = 0.5f;
    options.min_p       = 0;
    for (options.seed = 0; options.seed < 50; options.seed++) {
        const int32_t drawn = after(options, {}, { -INFINITY, 2, 2, -INFINITY, 2, 2 });
        CHECK((drawn == 1 || drawn == 2)); // half of the probability
    }
}

TEST_CASE("without penalties nothing said matters") {
    CHECK(after({}, { 0, 0, 0 }, { 3, 2, 1 }) == 0);
}

TEST_CASE("the repeat penalty divides above 0 and multiplies below") {
    SamplingOptions options;
    options.repeat_penalty = 2;
    CHECK(after(options, { 0 }, { 3, 2, 1 }) == 1);
    CHECK(after(options, { 0, 1 }, { 3, 1.6f, 1 }) == 0); // 1.5, 0.8, 1
    CHECK(after(options, { 0 }, { -1, -1.5f, -3 }) == 1); // -2
    CHECK(after(options, { 0 }, { 3, 1.4f, 1 }) == 0);    // 1.5
    options.repeat_penalty = 0.5f;
    CHECK(after(options, { 2 }, { 3, 2, 1.6f }) == 2); // 3.2: what was said becomes likelier
}

TEST_CASE("presence counts once, frequency every time") {
    SamplingOptions presence, frequency;
    presence.presence_penalty   = 1;
    frequency.frequency_penalty = 1;
    CHECK(after(presence, { 0, 0, 0 }, { 3, 1.5f }) == 0);  // 2
    CHECK(after(frequency, { 0 }, { 3, 1.5f }) == 0);       // 2
    CHECK(after(frequency, { 0, 0, 0 }, { 3, 1.5f }) == 1); // 0
}

TEST_CASE("only the last tokens count") {
    SamplingOptions options;
    options.presence_penalty = 5;
    options.penalty_window   = 2;
    CHECK(after(options, { 0, 1, 1 }, { 3, 2 }) == 0);
    CHECK(after(options, { 1, 0, 1 }, { 3, 2, 1 }) == 2);
    options.penalty_window = -1;
    CHECK(after(options, { 0, 1, 1, 1, 1 }, { 3, 2, 1 }) == 2);
    options.penalty_window = 0;
    CHECK(after(options, { 0, 0 }, { 3, 2 }) == 0);
}

TEST_CASE("what is not allowed stays so under a penalty, with and without a temperature") {
    SamplingOptions options;
    options.repeat_penalty   = 0.5f;
    options.presence_penalty = -10;
    CHECK(after(options, { 0 }, { -INFINITY, -4, -5 }) == 1);
    options.temperature = 1;
    for (uint64_t seed = 0; seed < 20; seed++) {
        options.seed = seed;
        CHECK(after(options, { 0 }, { -INFINITY, -4, -5 }) != 0);
    }
}

TEST_CASE("values out of range are named") {
    const auto rejected = [](float SamplingOptions::*field, float value, const char * name) {
        SamplingOptions options;
        options.*field = value;
        CHECK(test::contains(test::error_of([&] { check_sampling(options); }).message(), name));
    };
    rejected(&SamplingOptions::repeat_penalty, 0, "--repeat-penalty");
    rejected(&SamplingOptions::repeat_penalty, NAN, "--repeat-penalty");
    rejected(&SamplingOptions::presence_penalty, INFINITY, "--presence-penalty");
    rejected(&SamplingOptions::frequency_penalty, NAN, "--frequency-penalty");
}
