// Regular expressions of users and files: any bytes, and never long.
#include <doctest/doctest.h>

#include "support/errors.h"
#include "text/regex.h"

#include <ctime>

using namespace penelope;
using test::contains;
using test::error_of;

namespace {

Error refusal(const std::string & pattern, const std::string & name = "blk.0.attn_q.weight") {
    const std::clock_t begin = std::clock();
    const Error        error = error_of([&] { Regex::untrusted(pattern).is_in(name); });
    CHECK(double(std::clock() - begin) / CLOCKS_PER_SEC < 1);
    CHECK(error.kind == ErrorKind::format);
    return error;
}

} // namespace

TEST_CASE("patterns are found anywhere in names of any bytes") {
    CHECK(Regex::untrusted("attn_[qk]").is_in("blk.0.attn_q.weight"));
    CHECK(Regex::untrusted("^blk\\.\\d+\\.").is_in("blk.17.x"));
    CHECK_FALSE(Regex::untrusted("attn_[qk]$").is_in("blk.0.attn_q.weight"));
    CHECK(Regex::untrusted("a.b").is_in("\xFF\xC3"
                                        "a\xFE"
                                        "b\xF0"));
    CHECK(Regex::untrusted("").is_in(""));
}

TEST_CASE("patterns that need too much time or memory are errors") {
    CHECK(contains(refusal(std::string(1001, 'a')).message(), "at most 1000"));
    CHECK(contains(refusal(std::string(400, '(') + "a" + std::string(400, ')')).message(), "PCRE2"));
    CHECK(contains(refusal("(.*)*(.*)*(.*)*[xy]", std::string(200, 'a')).message(), "limit"));
    CHECK(contains(refusal("(a+)+(a+)+(a+)+$", std::string(200, 'a') + "b").message(), "limit"));
    refusal("(((a{1000}){1000}){1000}){1000}");
    refusal("a(");
    refusal("[z-a]");
    refusal("(*UTF)a");
}
