// Axes and charts: round ticks, scales, what is left out, text that must be escaped.
#include "report/axis.h"
#include "report/chart.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <limits>

using namespace penelope;

namespace {

std::vector<std::string> tick_texts(const Axis & axis) {
    std::vector<std::string> texts;
    for (double tick : axis.ticks) {
        texts.push_back(axis.text(tick));
    }
    return texts;
}

size_t count(const std::string & text, const std::string & fraction) {
    size_t n = 0;
    for (size_t at = text.find(fraction); at != std::string::npos; at = text.find(fraction, at + 1)) {
        n++;
    }
    return n;
}

using Texts = std::vector<std::string>;

} // namespace

TEST_CASE("a linear axis ends at round ticks around the data") {
    CHECK(tick_texts(make_axis({ 33.1, 47.9 })) == Texts{ "30", "35", "40", "45", "50" });
    CHECK(tick_texts(make_axis({ 0.02, 0.61 })) == Texts{ "0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7" });
    CHECK(tick_texts(make_axis({ -3, 3 })) == Texts{ "-3", "-2", "-1", "0", "1", "2", "3" });
    const Axis axis = make_axis({ 0, 100 });
    CHECK(axis.fraction(0) == 0.0);
    CHECK(axis.fraction(100) == 1.0);
    CHECK(axis.fraction(25) == 0.25);
}

TEST_CASE("whole and tight axes") {
    CHECK(tick_texts(make_axis({ 0, 1, 2, 3 }, { false, true, true })) == Texts{ "0", "1", "2", "3" });
    const Axis updates = make_axis({ 1, 2200 }, { false, false, true });
    CHECK(updates.low == 0.0);
    CHECK(updates.high < 2300);
    CHECK(tick_texts(updates) == Texts{ "0", "500", "1000", "1500", "2000" });
}

TEST_CASE("a logarithmic axis has ticks at 1, 2, 5 and is used only where it pays") {
    const Axis axis = make_axis({ 0.03, 4.0 }, { true });
    CHECK(axis.logarithmic);
    CHECK(tick_texts(axis) == Texts{ "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5" });
    CHECK(axis.fraction(axis.low) == doctest::Approx(0));
    CHECK(axis.fraction(axis.high) == doctest::Approx(1));
    CHECK(axis.fraction(std::sqrt(axis.low * axis.high)) == doctest::Approx(0.5));
    CHECK(!make_axis({ 1, 3 }, { true }).logarithmic);
    CHECK(!make_axis({ 0, 300 }, { true }).logarithmic);
    CHECK(tick_texts(make_axis({ 1e-7, 9e2 }, { true })).size() == 11);
}

TEST_CASE("no value, one value and values that are no numbers still give an axis") {
    const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
    for (const std::vector<double> & values :
         { std::vector<double>{}, std::vector<double>{ 5 }, std::vector<double>{ 0, 0 },
           std::vector<double>{ nan, infinity, 2 }, std::vector<double>{ 1e300, 1e300 } }) {
        for (const AxisStyle & style :
             { AxisStyle{}, AxisStyle{ true }, AxisStyle{ false, true }, AxisStyle{ false, true, true } }) {
            const Axis axis = make_axis(values, style);
            CHECK(axis.low < axis.high);
            CHECK(!axis.ticks.empty());
            CHECK(axis.ticks.size() < 20);
        }
    }
}

TEST_CASE("a chart draws its series, leaves out what is no number and escapes text") {
    Chart chart{ "a < b & \"c\"", "x\n", "y", {}, {}, true, {}, {} };
    chart.series = { { "first>", { { 0, 1 }, { 1, std::nan("") }, { 2, 3, "K=2" } } }, { "second", { { 0, 2 } } } };
    chart.levels = { { "guess", 2.5 } };
    const std::string svg = draw_chart(chart);
    CHECK(svg.rfind("<svg xmlns=", 0) == 0);
    CHECK(svg.substr(svg.size() - 7) == "</svg>\n");
    CHECK(count(svg, "<circle") == 3);
    CHECK(count(svg, ">a &lt; b &amp; &quot;c&quot;<") == 1);
    CHECK(count(svg, ">first&gt;<") == 1);
    CHECK(count(svg, ">K=2<") == 1);
    CHECK(count(svg, ">guess<") == 1);
    CHECK(count(svg, "nan") == 0);
    CHECK(count(svg, "<g") == count(svg, "</g>"));
}

TEST_CASE("overlapping labels are omitted") {
    Chart chart{ "t", "x", "y", {}, {}, true, {}, {} };
    chart.series          = { { "s", { { 0, 0, "K=0" }, { 1, 0.1, "K=1" }, { 50, 0, "K=2" }, { 100, 1, "K=3" } } } };
    const std::string svg = draw_chart(chart);
    CHECK(count(svg, "<circle") == 4);
    CHECK(count(svg, ">K=0<") == 1);
    CHECK(count(svg, ">K=1<") == 1);
    CHECK(count(svg, ">K=2<") == 1);
    chart.series[0].points[1].y = 0.01;
    CHECK(count(draw_chart(chart), ">K=1<") == 0);
}

TEST_CASE("many names take several lines of the legend, and no two series look alike") {
    Chart chart{ "t", "x", "y", {}, {}, false, {}, {} };
    for (int i = 0; i < 14; i++) {
        chart.series.push_back({ "a rather long name " + std::to_string(i), { { 0, double(i) }, { 1, double(i) } } });
    }
    const std::string svg = draw_chart(chart);
    CHECK(count(svg, "stroke=\"#0072B2\"") == 4); // sample and curve of two series
    CHECK(count(svg, "stroke=\"#0072B2\" stroke-dasharray") == 2);
    CHECK(count(svg, "y=\"44\"") == 3); // names in the first line
}

TEST_CASE("a chart without a point is still a document") {
    CHECK(draw_chart({ "t", "x", "y", {}, {}, false, {}, {} }).find("</svg>") != std::string::npos);
}

TEST_CASE("shares are shown from 0 to 100") {
    CHECK(tick_texts(make_axis({ 86.1, 87.3 }, { false, false, false, true })) ==
          Texts{ "0", "20", "40", "60", "80", "100" });
}

TEST_CASE("a series of one point shows a dot, also where curves have none") {
    Chart chart;
    chart.series = { { "one", { { 3, 4 } } } };
    CHECK(count(draw_chart(chart), "<circle") == 1);
    chart.series[0].points.push_back({ 4, 5 });
    CHECK(count(draw_chart(chart), "<circle") == 0);
}

TEST_CASE("a curve under an equal one stays visible: it is wider") {
    Chart chart;
    chart.series          = { { "below", { { 0, 1 }, { 1, 2 } } }, { "above", { { 0, 1 }, { 1, 2 } } } };
    const std::string svg = draw_chart(chart);
    CHECK(svg.find("stroke-width=\"3.2\"") != std::string::npos);
    CHECK(svg.find("stroke-width=\"3.2\"") < svg.find("stroke-width=\"1.8\""));
}

TEST_CASE("labels of neighbouring points and levels do not cover each other") {
    Chart chart;
    chart.series = { { "a", { { 0, 40 }, { 2, 50, "K=0" }, { 8, 50, "K=1" }, { 10, 60 } } },
                     { "b", { { 2, 50, "K=00" }, { 8, 50.1, "K=11" } } } };
    chart.levels = { { "guess", 50 }, { "guess again", 50.2 } };
    struct Text {
        double x, y;
    };
    std::vector<Text> texts;
    const std::string svg = draw_chart(chart);
    for (const char * label : { ">K=0<", ">K=1<", ">K=00<", ">K=11<", ">guess<", ">guess again<" }) {
        const size_t end = svg.find(label);
        if (end == std::string::npos) {
            continue; // left out for want of room
        }
        const size_t at = svg.rfind("<text x=\"", end);
        Text         text{};
        CHECK(std::sscanf(svg.c_str() + at, "<text x=\"%lf\" y=\"%lf\"", &text.x, &text.y) == 2);
        for (const Text & other : texts) {
            CHECK((std::fabs(text.y - other.y) >= 11 || std::fabs(text.x - other.x) >= 20));
        }
        texts.push_back(text);
    }
    CHECK(texts.size() == 6);
}
