// Philox against the published known answers, replay from a position, and the distributions drawn from it.
#include <doctest/doctest.h>

#include "base/rng.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

using penelope::philox4x32;
using penelope::PhiloxCounter;
using penelope::Rng;
using penelope::stream_id;

TEST_CASE("philox4x32 with ten rounds gives the known answers of Random123") {
    CHECK(philox4x32({ 0, 0, 0, 0 }, { 0, 0 }) == PhiloxCounter{ 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 });
    CHECK(philox4x32({ 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff }, { 0xffffffff, 0xffffffff }) ==
          PhiloxCounter{ 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd });
    CHECK(philox4x32({ 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, { 0xa4093822, 0x299f31d0 }) ==
          PhiloxCounter{ 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 });
}

TEST_CASE("seed is the key, stream and block number are the counter") {
    const uint64_t seed  = 0x299f31d0a4093822;
    const uint64_t block = 0x85a308d3243f6a88 >> 2; // the position counts words, so the two top bits are out of reach
    Rng            rng(seed, 0x0370734413198a2e, block * 4);
    const PhiloxCounter expected =
        philox4x32({ static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0x13198a2e, 0x03707344 },
                   { 0xa4093822, 0x299f31d0 });
    for (const uint32_t word : expected) {
        CHECK(rng.u32() == word);
    }
    Rng zero(0);
    CHECK(zero.u64() == 0xe169c58d6627e8d5);
}

TEST_CASE("a draw can be replayed from its position") {
    Rng                   first(42, stream_id("dropout", 3));
    std::vector<uint32_t> words;
    for (int i = 0; i < 23; ++i) {
        words.push_back(first.u32());
    }
    for (size_t start = 0; start < words.size(); ++start) {
        Rng again(42, stream_id("dropout", 3), start);
        for (size_t i = start; i < words.size(); ++i) {
            REQUIRE(again.u32() == words[i]);
        }
        CHECK(again.position() == words.size());
    }
    first.below(1000);
    first.normal();
    Rng resumed(first.seed(), first.stream(), first.position());
    CHECK(resumed.u64() == first.u64());
}

TEST_CASE("purposes, indices and seeds give different streams") {
    std::set<uint64_t> ids;
    for (const char * purpose : { "dropout", "shuffle", "init", "" }) {
        for (uint64_t index = 0; index < 100; ++index) {
            ids.insert(stream_id(purpose, index));
        }
    }
    CHECK(ids.size() == 400);
    CHECK(Rng(1, 2).u64() != Rng(1, 3).u64());
    CHECK(Rng(1, 2).u64() != Rng(2, 2).u64());
    CHECK(stream_id("shuffle") == stream_id("shuffle", 0));
}

TEST_CASE("bounded integers are uniform for small, awkward and huge bounds") {
    Rng rng(7);
    CHECK(rng.below(1) == 0);
    for (const uint64_t n : { uint64_t{ 3 }, uint64_t{ 10 }, uint64_t{ 13 } }) {
        std::vector<double> counts(n);
        const int           n_draws = 100000;
        for (int i = 0; i < n_draws; ++i) {
            counts.at(rng.below(n)) += 1;
        }
        double chi_squared = 0;
        for (const double count : counts) {
            const double expected = static_cast<double>(n_draws) / static_cast<double>(n);
            chi_squared += (count - expected) * (count - expected) / expected;
        }
        CHECK(chi_squared < 32.9); // 99.9 % point of 12 degrees of freedom, the largest case
    }
    // 3 * 2^30 is the worst case for a modulo or a plain multiply: a third of the values would come up twice as often.
    const uint64_t awkward = uint64_t{ 3 } << 30;
    double         low     = 0;
    for (int i = 0; i < 100000; ++i) {
        const uint64_t draw = rng.below(awkward);
        REQUIRE(draw < awkward);
        low += draw % 3 == 0 ? 1 : 0;
    }
    CHECK(low / 100000 == doctest::Approx(1.0 / 3).epsilon(0.02));
    const uint64_t huge = (uint64_t{ 1 } << 63) + 12345;
    double         mean = 0;
    for (int i = 0; i < 20000; ++i) {
        const uint64_t draw = rng.below(huge);
        REQUIRE(draw < huge);
        mean += static_cast<double>(draw) / static_cast<double>(huge) / 20000;
    }
    CHECK(std::abs(mean - 0.5) < 0.01);
}

TEST_CASE("uniforms lie in [0,1) with the right moments") {
    Rng       rng(11);
    double    sum         = 0;
    double    sum_squares = 0;
    double    sum_float   = 0;
    const int n           = 200000;
    for (int i = 0; i < n; ++i) {
        const double x = rng.uniform();
        const float  y = rng.uniform_float();
        REQUIRE((x >= 0.0 && x < 1.0 && y >= 0.0f && y < 1.0f));
        sum += x;
        sum_squares += x * x;
        sum_float += y;
    }
    CHECK(std::abs(sum / n - 0.5) < 0.003);
    CHECK(std::abs(sum_squares / n - 1.0 / 3) < 0.003);
    CHECK(std::abs(sum_float / n - 0.5) < 0.003);
}

TEST_CASE("normal draws have the moments and tails of the standard normal") {
    Rng       rng(5);
    const int n  = 200000;
    double    m1 = 0, m2 = 0, m3 = 0, m4 = 0, beyond_two = 0;
    for (int i = 0; i < n; ++i) {
        const double x = rng.normal();
        REQUIRE(std::isfinite(x));
        m1 += x / n;
        m2 += x * x / n;
        m3 += x * x * x / n;
        m4 += x * x * x * x / n;
        beyond_two += std::abs(x) > 2 ? 1.0 / n : 0;
    }
    CHECK(std::abs(m1) < 0.01);
    CHECK(std::abs(m2 - 1) < 0.015);
    CHECK(std::abs(m3) < 0.04);
    CHECK(std::abs(m4 - 3) < 0.1);
    CHECK(std::abs(beyond_two - 0.0455) < 0.002);
}

TEST_CASE("Poisson draws follow the probability function") {
    for (const double mean : { 0.0, 0.3, 1.5, 20.0 }) {
        Rng              rng(9, stream_id("poisson", static_cast<uint64_t>(mean * 10)));
        std::vector<int> counts(80);
        const int        n = 100000;
        for (int i = 0; i < n; ++i) {
            counts.at(static_cast<size_t>(rng.poisson(mean)))++;
        }
        for (size_t k = 0; k < 40; ++k) {
            const double log_p =
                mean == 0.0 ? (k == 0 ? 0.0 : -INFINITY)
                            : static_cast<double>(k) * std::log(mean) - mean - std::lgamma(static_cast<double>(k) + 1);
            const double p = std::exp(log_p);
            CHECK(std::abs(counts[k] / static_cast<double>(n) - p) < 4.5 * std::sqrt(p * (1 - p) / n) + 1e-4);
        }
    }
}

TEST_CASE("shuffle reaches all orders equally often") {
    Rng                             rng(3);
    std::map<std::vector<int>, int> counts;
    for (int i = 0; i < 24000; ++i) {
        std::vector<int> items = { 0, 1, 2, 3 };
        rng.shuffle(items);
        counts[items]++;
    }
    CHECK(counts.size() == 24);
    for (const auto & [order, count] : counts) {
        CHECK(std::abs(count - 1000) < 140); // 4.5 standard deviations
    }
    std::vector<int> empty;
    rng.shuffle(empty);
    CHECK(empty.empty());
}

TEST_CASE("weighted choice without replacement follows successive sampling") {
    Rng                                      rng(21);
    const std::vector<double>                weights = { 1.0, 0.0, 2.5, 4.0 };
    std::map<std::pair<size_t, size_t>, int> counts;
    const int                                n = 60000;
    for (int i = 0; i < n; ++i) {
        const std::vector<size_t> pick = rng.choose_weighted(weights, 2);
        REQUIRE(pick.size() == 2);
        REQUIRE(pick[0] != pick[1]);
        counts[{ pick[0], pick[1] }]++;
    }
    for (const size_t a : { 0, 2, 3 }) {
        for (const size_t b : { 0, 2, 3 }) {
            if (a != b) {
                const double p = weights[a] / 7.5 * weights[b] / (7.5 - weights[a]);
                CHECK(std::abs(counts[{ a, b }] / static_cast<double>(n) - p) < 4.5 * std::sqrt(p * (1 - p) / n));
            }
        }
    }
    CHECK(counts.size() == 6);
    const std::vector<size_t> all = rng.choose_weighted({ 1, 1, 1 }, 3);
    CHECK(std::set<size_t>(all.begin(), all.end()) == std::set<size_t>{ 0, 1, 2 });
    CHECK(rng.choose_weighted({ 1, 1 }, 0).empty());
}

TEST_CASE("plain choice draws each ordered pair equally often") {
    Rng                                rng(22);
    std::map<std::vector<size_t>, int> counts;
    for (int i = 0; i < 20000; ++i) {
        counts[rng.choose(5, 2)]++;
    }
    CHECK(counts.size() == 20);
    for (const auto & [pair, count] : counts) {
        CHECK(pair[0] != pair[1]);
        CHECK(std::abs(count - 1000) < 140);
    }
}
