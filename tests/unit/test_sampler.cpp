// Penalties on what an answer already said, and what they leave alone.
#include "infer/sampler.h"

#include "support/errors.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace penelope;

namespace {

int32_t after(const SamplingOptions & options, const std::vector<int32_t> & said, const std::vector<float> & logits) {
    Sampler sampler(options);
    for (const int32_t token : said) {
        sampler.accept(token);
    }
    return sampler.sample(logits.data(), int(logits.size()));
}

} // namespace

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
