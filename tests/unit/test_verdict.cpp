// The verdict of `penelope learn` on made-up scores.
#include "learn/verdict.h"
#include "support/errors.h"

#include <doctest/doctest.h>

using namespace penelope;
using penelope::test::contains;

namespace {

ScoredLine line(double em, double ms = 10, size_t n = 400) {
    ScoredLine l;
    l.n                     = n;
    l.em                    = em;
    l.latency_ms            = ms;
    std::tie(l.low, l.high) = wilson_interval(em, n);
    return l;
}

PairedDifference difference(double mean, double half = 0.04) {
    return { 400, mean, mean - half, mean + half };
}

// Written steps 95 %, latent steps 93.1 % at K = 4, control 51.2 %.
VerdictInput good() {
    VerdictInput v;
    v.majority          = 0.3;
    v.n_steps           = 4;
    v.base              = line(0.02, 50);
    v.visible           = line(0.95, 41);
    v.latent            = line(0.931, 10);
    v.control           = line(0.512, 8);
    v.swapped           = line(0.2);
    v.base_to_visible   = difference(0.93);
    v.control_to_latent = difference(0.419);
    v.swapped_to_latent = difference(0.73);
    return v;
}

} // namespace

TEST_CASE("latent steps that carry the answer") {
    const Verdict v = judge(good());
    CHECK(v.best == BestFile::latent);
    CHECK(v.headline == "Latent steps carry the answer: 93.1 % at K=4, 4.1 times faster than written steps (95.0 %), "
                        "control 51.2 %.");
}

TEST_CASE("latent steps that are better than the control but much worse than written ones") {
    VerdictInput v        = good();
    v.latent              = line(0.7);
    const Verdict verdict = judge(v);
    CHECK(verdict.best == BestFile::visible);
    CHECK(contains(verdict.headline, "a part of the answer: 70.0 % at K=4, control 51.2 %, but written steps"));
}

TEST_CASE("latent steps no better than the control") {
    VerdictInput v        = good();
    v.latent              = line(0.52);
    v.control_to_latent   = difference(0.008);
    const Verdict verdict = judge(v);
    CHECK(verdict.best == BestFile::visible);
    CHECK(contains(verdict.headline, "Latent steps do not help on this data: 52.0 % at K=4"));
    CHECK(contains(verdict.advice, "written steps"));
}

TEST_CASE("a gain that the memory of another question gives too is none") {
    VerdictInput v      = good();
    v.swapped           = line(0.93);
    v.swapped_to_latent = difference(0.001);
    CHECK(judge(v).best == BestFile::visible);
}

TEST_CASE("a control as good as everything: no steps are needed") {
    VerdictInput v        = good();
    v.control             = line(0.94);
    v.control_to_latent   = difference(-0.009);
    const Verdict verdict = judge(v);
    CHECK(verdict.best == BestFile::control);
    CHECK(contains(verdict.headline, "No steps are needed"));
}

TEST_CASE("without a control latent steps have to beat the most frequent answer") {
    VerdictInput v = good();
    v.control.reset();
    v.control_to_latent.reset();
    CHECK(judge(v).best == BestFile::latent);
    CHECK(!contains(judge(v).headline, "control"));
    v.latent  = line(0.31);
    v.visible = line(0.33);
    CHECK(judge(v).best == BestFile::visible);
    CHECK(contains(judge(v).headline, "not learned"));
}

TEST_CASE("nothing learned, and a base that was better before") {
    VerdictInput v      = good();
    v.latent            = line(0.3);
    v.control           = line(0.3);
    v.control_to_latent = difference(0.0);
    v.visible           = line(0.31);
    v.base_to_visible   = difference(0.29);
    CHECK(contains(judge(v).headline, "not learned"));
    v.base            = line(0.6);
    v.base_to_visible = difference(-0.29);
    CHECK(judge(v).best == BestFile::base);
    CHECK(contains(judge(v).headline, "Training did not help"));
}

TEST_CASE("data without steps") {
    VerdictInput v = good();
    v.has_steps    = false;
    v.latent.reset();
    v.control.reset();
    v.swapped.reset();
    const Verdict verdict = judge(v);
    CHECK(verdict.best == BestFile::visible);
    CHECK(contains(verdict.headline, "The model learned the answers: 95.0 % right, the base model 2.0 %"));
}

TEST_CASE("times that were not measured, and latent steps that are slower") {
    VerdictInput v        = good();
    v.visible->latency_ms = NAN;
    CHECK(!contains(judge(v).headline, "faster"));
    v.visible->latency_ms = 5;
    CHECK(contains(judge(v).headline, "2.0 times slower than written steps"));
}

TEST_CASE("Wilson's interval") {
    const auto [low, high] = wilson_interval(0.5, 100);
    CHECK(low == doctest::Approx(0.4038).epsilon(0.001));
    CHECK(high == doctest::Approx(0.5962).epsilon(0.001));
    CHECK(wilson_interval(1.0, 50).second == doctest::Approx(1.0));
    CHECK(wilson_interval(1.0, 50).first == doctest::Approx(0.9287).epsilon(0.001));
    CHECK(wilson_interval(0.0, 0).second == 1.0);
}
