// Numbers, whitespace, Markdown tables and statistics of src/base.
#include <doctest/doctest.h>

#include "base/markdown_table.h"
#include "base/number_text.h"
#include "base/statistics.h"
#include "base/trim.h"

using namespace penelope;

TEST_CASE("floats are printed with as few digits as they need") {
    CHECK(fixed(2.0 / 3, 2) == "0.67");
    CHECK(fixed(-1.5, 0) == "-2");
    CHECK(with_digits("%.1f %%", 12.34) == "12.3 %");
    CHECK(shortest_text(0.1) == "0.1");
    CHECK(shortest_text(1e-05) == "1e-05");
    CHECK(shortest_decimal(0.05f) == 0.05);
    CHECK(shortest_decimal(1e-5f) == 1e-5);
    CHECK(shortest_decimal(16777216.0f) == 16777216.0);
    CHECK(float(shortest_decimal(0.123456789f)) == 0.123456789f);
}

TEST_CASE("whitespace is cut at the ends only") {
    CHECK(trim(" \t a b\r\n\f") == "a b");
    CHECK(trim("a") == "a");
    CHECK(trim(" \n") == "");
    CHECK(trim("") == "");
    CHECK(trim("\n a\n", " ") == "\n a\n");
    CHECK(trim_end(" a ") == " a");
    CHECK(trim_end("  ") == "");
    CHECK(is_blank(" \t\r\n"));
    CHECK(is_blank(""));
    CHECK_FALSE(is_blank(" x"));
}

TEST_CASE("a Markdown table escapes bars and lines up if asked to") {
    const MarkdownTable table{ { "name", "n" }, { false, true }, { { "a|b", "7" }, { "± é", "12345" } } };
    CHECK(table.text(false) == "| name | n |\n|---|---:|\n| a\\|b | 7 |\n| ± é | 12345 |\n");
    CHECK(table.text(true) == "| name |     n |\n"
                              "|------|------:|\n"
                              "| a\\|b |     7 |\n"
                              "| ± é  | 12345 |\n");
}

TEST_CASE("mean, deviation, quantile, interval") {
    const MeanStd s = mean_std({ 1, 2, 3, 6 });
    CHECK(s.mean == doctest::Approx(3));
    CHECK(s.sd == doctest::Approx(2.160247));
    CHECK(mean_std({ 4 }).sd == 0);
    CHECK(mean_std({}).mean == 0);
    CHECK(quantile({ 1, 2, 3, 4, 5 }, 0.5) == 3);
    CHECK(quantile({ 1, 2, 3, 4, 5 }, 1.0) == 5);
    CHECK(quantile({ 7 }, 0.975) == 7);
    CHECK(wilson_interval(0.5, 100).first == doctest::Approx(0.4038).epsilon(0.001));
}
