// The helper all comparisons of the tests go through.
#include <doctest/doctest.h>

#include "support/difference.h"

#include <sstream>

using penelope::test::difference;
using penelope::test::largest;
using Values = std::vector<float>;

TEST_CASE("the largest difference and its place") {
    const auto found = difference(Values{ 1, 2, 3 }, Values{ 1, 2.5, 2.75 });
    CHECK(found.most == 0.5);
    CHECK(found.at == 1);
    CHECK(found < 0.6);
    CHECK_FALSE(found < 0.5);
    CHECK(found <= 0.5);
    std::ostringstream text;
    text << found;
    CHECK(text.str() == "0.5 (element 1 is 2, expected 2.5)");
    CHECK(difference(Values{}, Values{}) <= 0);
}

TEST_CASE("nothing that is not finite is near anything, wherever it stands") {
    for (float odd : { NAN, INFINITY, -INFINITY }) {
        for (size_t at : { 0, 1, 2 }) {
            Values good{ 1, 2, 3 }, bad = good;
            bad[at] = odd;
            for (const auto & found : { difference(bad, good), difference(good, bad), difference(bad, bad) }) {
                CHECK_FALSE(found < 1e30);
                CHECK_FALSE(found < double(INFINITY));
                CHECK_FALSE(found <= double(INFINITY));
                CHECK_FALSE(found <= largest(bad));
                CHECK(found.at == at);
            }
            CHECK(std::isnan(largest(bad)));
        }
    }
    CHECK(largest(Values{ 1, -4, 3 }) == 4);
}
