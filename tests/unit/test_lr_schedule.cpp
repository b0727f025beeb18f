#include "train/lr_schedule.h"

#include <doctest/doctest.h>

#include <initializer_list>

using penelope::lr_factor;
using penelope::warmup_updates;

TEST_CASE("four updates with one of warm-up") {
    const double expected[] = { 1.0, 0.8535533905932737, 0.5, 0.1464466094067263 };
    for (int i = 1; i <= 4; i++) {
        CHECK(lr_factor(i, 4, 1) == doctest::Approx(expected[i - 1]).epsilon(1e-12));
    }
}

TEST_CASE("every update of a run of any length has a rate above zero") {
    for (int64_t n = 1; n <= 40; n++) {
        for (const double share : { 0.0, 0.05, 0.5, 1.0 }) {
            for (int64_t update = 1; update <= n; update++) {
                CAPTURE(n);
                CAPTURE(share);
                CAPTURE(update);
                CHECK(lr_factor(update, n, warmup_updates(n, share)) > 0.0);
                CHECK(lr_factor(update, n, warmup_updates(n, share)) <= 1.0);
            }
        }
    }
    CHECK(lr_factor(2, 2, 1) == doctest::Approx(0.5));
}

TEST_CASE("a full run rises in equal steps and falls to nearly zero") {
    CHECK(lr_factor(1, 1500, 75) == doctest::Approx(1.0 / 75));
    CHECK(lr_factor(75, 1500, 75) == 1.0);
    CHECK(lr_factor(788, 1500, 75) == doctest::Approx(0.5).epsilon(2e-3));
    CHECK(lr_factor(1500, 1500, 75) == doctest::Approx(1.2133e-6).epsilon(1e-3)); // (pi / 1426)^2 / 4
    for (int i = 76; i <= 1500; i++) {
        CHECK(lr_factor(i, 1500, 75) < lr_factor(i - 1, 1500, 75));
    }
}

TEST_CASE("no warm-up, and nothing but warm-up") {
    CHECK(lr_factor(1, 2, 0) == doctest::Approx(0.75));
    CHECK(lr_factor(2, 2, 0) == doctest::Approx(0.25));
    CHECK(lr_factor(3, 3, 3) == 1.0);
}

TEST_CASE("warm-up is a share of the updates, rounded up") {
    CHECK(warmup_updates(4, 0.05) == 1);
    CHECK(warmup_updates(100, 0.05) == 5);
    CHECK(warmup_updates(1500, 0.05) == 75);
    CHECK(warmup_updates(101, 0.05) == 6);
    CHECK(warmup_updates(10, 0.0) == 0);
    CHECK(warmup_updates(3, 2.0) == 3);
}
