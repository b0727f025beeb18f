#include "text/stop_strings.h"

#include <doctest/doctest.h>

using namespace penelope;

namespace {

// The text fed in pieces of n bytes.
std::string fed(StopStrings & stops, const std::string & text, size_t n) {
    std::string out;
    for (size_t i = 0; i < text.size(); i += n) {
        out += stops.feed(text.substr(i, n));
    }
    return out;
}

} // namespace

TEST_CASE("text ends before the first stop string, however it is split into tokens") {
    const std::string text = "aab aabc aabcd and more";
    for (size_t n : { 1, 2, 3, 5, 100 }) {
        CAPTURE(n);
        StopStrings stops({ "nowhere", "aabcd", "", "and" });
        CHECK(fed(stops, text, n) == "aab aabc ");
        CHECK(stops.hit());
        CHECK(stops.found() == "aabcd");
        CHECK(stops.feed("aabc") == "");
        CHECK(stops.flush() == "");
    }
}

TEST_CASE("text that might begin a stop string waits, and comes at the end") {
    StopStrings stops({ "###", "#END" });
    CHECK(stops.feed("x##") == "x");
    CHECK(stops.feed("y#E") == "##y");
    CHECK(stops.feed("N") == "");
    CHECK_FALSE(stops.hit());
    CHECK(stops.flush() == "#EN");
    CHECK(stops.found() == "");
}

TEST_CASE("without stop strings nothing waits") {
    StopStrings stops({});
    CHECK(stops.feed("abc") == "abc");
    CHECK(stops.flush() == "");
}
