#include "report/chart.h"

#include "base/number_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace penelope {

namespace {

constexpr double kWidth = 720, kPlotHeight = 300;
constexpr double kLeft = 64, kRight = 24, kTitle = 34, kBottom = 52;
constexpr double kLegendLine = 18, kLetter = 6.6, kSample = 24,
                 kLegendGap = 18; // a letter is about 0.55 of the font size wide
constexpr double kStroke = 1.8, kDot = 3.5, kWider = 1.4, kMostAbove = 3;

// Distinct for people who see few colours (Okabe and Ito).
const char * const kColours[] = { "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000" };
const char * const kDashes[]  = { "", "7 3", "2 3" };

struct Line {
    std::string colour, dashes;
};

Line line_of(size_t i) {
    const size_t n = std::size(kColours);
    return { kColours[i % n], kDashes[i / n % std::size(kDashes)] };
}

std::string px(double value) {
    const std::string all = fixed(value, 1);
    return all.substr(all.size() - 2) == ".0" ? all.substr(0, all.size() - 2) : all;
}

std::string escaped(const std::string & text) {
    std::string out;
    for (char c : text) {
        switch (c) {
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '&': out += "&amp;"; break;
            case '"': out += "&quot;"; break;
            // XML has no way to write other control characters.
            default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
        }
    }
    return out;
}

std::string text_at(double x, double y, const std::string & text, const std::string & attributes = "") {
    return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\"" + (attributes.empty() ? "" : " " + attributes) + ">" +
           escaped(text) + "</text>\n";
}

std::string stroke(double x1, double y1, double x2, double y2, const std::string & attributes) {
    return "<path d=\"M" + px(x1) + " " + px(y1) + "L" + px(x2) + " " + px(y2) + "\" " + attributes + "/>\n";
}

std::string stroke_style(const Line & line) {
    return "stroke=\"" + line.colour + "\"" + (line.dashes.empty() ? "" : " stroke-dasharray=\"" + line.dashes + "\"");
}

double text_width(const std::string & text) {
    return kLetter * double(text.size());
}

// The names of the series in lines of the plot's width. Gives the height it takes.
double draw_legend(const std::vector<Series> & series, std::string & svg) {
    double x = kLeft, y = kTitle + 10;
    for (size_t i = 0; i < series.size(); i++) {
        const double width = kSample + 6 + text_width(series[i].name);
        if (x > kLeft && x + width > kWidth - kRight) {
            x = kLeft;
            y += kLegendLine;
        }
        svg += stroke(x, y - 4, x + kSample, y - 4, stroke_style(line_of(i)) + " stroke-width=\"2.5\"");
        svg += text_at(x + kSample + 6, y, series[i].name);
        x += width + kLegendGap;
    }
    return y + 10;
}

class Plot {
  public:
    Plot(const Axis & x, const Axis & y, double top) : x_(x), y_(y), top_(top) {}

    double bottom() const { return top_ + kPlotHeight; }
    double right() const { return kWidth - kRight; }
    double x(double value) const { return kLeft + x_.fraction(value) * (right() - kLeft); }
    double y(double value) const { return bottom() - y_.fraction(value) * kPlotHeight; }
    bool   shows(const ChartPoint & p) const {
          const bool x_ok = std::isfinite(p.x) && (!x_.logarithmic || p.x > 0);
          const bool y_ok = std::isfinite(p.y) && (!y_.logarithmic || p.y > 0);
          return x_ok && y_ok;
    }

    std::string frame(const Chart & chart) const {
        std::string svg = "<g stroke=\"#e4e4e4\">\n";
        for (double tick : y_.ticks) {
            svg += stroke(kLeft, y(tick), right(), y(tick), "");
        }
        for (double tick : x_.ticks) {
            svg += stroke(x(tick), top_, x(tick), bottom(), "");
        }
        svg += "</g>\n<path d=\"M" + px(kLeft) + " " + px(top_) + "V" + px(bottom()) + "H" + px(right()) +
               "\" fill=\"none\" stroke=\"#555\"/>\n<g fill=\"#444\">\n";
        for (double tick : y_.ticks) {
            svg += text_at(kLeft - 8, y(tick) + 4, y_.text(tick), "text-anchor=\"end\"");
        }
        for (double tick : x_.ticks) {
            svg += text_at(x(tick), bottom() + 18, x_.text(tick), "text-anchor=\"middle\"");
        }
        const double middle = (top_ + bottom()) / 2;
        svg += text_at((kLeft + right()) / 2, bottom() + 40, chart.x_label, "text-anchor=\"middle\"");
        svg += text_at(16, middle, chart.y_label,
                       "text-anchor=\"middle\" transform=\"rotate(-90 16 " + px(middle) + ")\"");
        return svg + "</g>\n";
    }

    std::string level(const Level & level) {
        const double width = text_width(level.name);
        Box          box{ right() - 4 - width, y(level.y) - 16, right() - 4, y(level.y) - 2 };
        if (!is_free(box)) {
            box.top += 18; // below its line instead
            box.bottom += 18;
        }
        taken_.push_back(box);
        return stroke(kLeft, y(level.y), right(), y(level.y), "stroke=\"#777\" stroke-dasharray=\"4 4\"") +
               text_at(box.right, box.bottom - 3, level.name, "text-anchor=\"end\" fill=\"#666\" font-size=\"11\"");
    }

    // n_above: curves drawn after this one. A curve is wider than those above it, so that one that lies under another
    // still shows.
    std::string curve(const Series & series, const Line & line, bool markers, size_t n_above) {
        const double      spare  = std::min<double>(double(n_above), kMostAbove);
        const std::string width  = px(kStroke + kWider * spare);
        const std::string radius = px(kDot + kWider * spare / 2);
        const auto        n_shown =
            std::count_if(series.points.begin(), series.points.end(), [&](const ChartPoint & p) { return shows(p); });
        std::string path, dots, labels;
        for (const ChartPoint & p : series.points) {
            if (!shows(p)) {
                continue;
            }
            path += (path.empty() ? "M" : "L") + px(x(p.x)) + " " + px(y(p.y));
            if (markers || n_shown == 1) { // a path of one point shows nothing
                dots += "<circle cx=\"" + px(x(p.x)) + "\" cy=\"" + px(y(p.y)) + "\" r=\"" + radius + "\"/>\n";
            }
            labels += label_at(x(p.x), y(p.y), p.label);
        }
        if (path.empty()) {
            return "";
        }
        return "<path d=\"" + path + "\" fill=\"none\" " + stroke_style(line) + " stroke-width=\"" + width +
               "\" stroke-linejoin=\"round\"/>\n<g fill=\"" + line.colour + "\">\n" + dots + labels + "</g>\n";
    }

  private:
    struct Box {
        double left, top, right, bottom;
    };

    // Inside the plot, and off every text before it.
    bool is_free(const Box & box) const {
        return box.left >= kLeft && box.right <= right() && box.top >= top_ && box.bottom <= bottom() &&
               std::none_of(taken_.begin(), taken_.end(), [&](const Box & other) {
                   return box.left < other.right && other.left < box.right && box.top < other.bottom &&
                          other.top < box.bottom;
               });
    }

    // Beside its point where there is room: below or above, to the right or to the left; nowhere when there is none.
    std::string label_at(double at_x, double at_y, const std::string & label) {
        if (label.empty()) {
            return "";
        }
        const double width = text_width(label);
        for (const double left : { at_x + 6, at_x - 6 - width }) {
            for (const double top : { at_y + 2, at_y - 17 }) {
                const Box box{ left, top, left + width, top + 13 };
                if (is_free(box)) {
                    taken_.push_back(box);
                    return text_at(left, box.bottom - 2, label, "font-size=\"11\"");
                }
            }
        }
        return "";
    }

    const Axis &     x_;
    const Axis &     y_;
    double           top_;
    std::vector<Box> taken_; // by texts
};

} // namespace

std::string draw_chart(const Chart & chart) {
    std::vector<double> xs, ys;
    for (const Series & series : chart.series) {
        for (const ChartPoint & p : series.points) {
            if (std::isfinite(p.x) && std::isfinite(p.y)) {
                xs.push_back(p.x);
                ys.push_back(p.y);
            }
        }
    }
    for (const Level & level : chart.levels) {
        ys.push_back(level.y);
    }
    const Axis x_axis = make_axis(xs, chart.x_style), y_axis = make_axis(ys, chart.y_style);

    std::string  legend;
    const double top = draw_legend(chart.series, legend);
    Plot         plot(x_axis, y_axis, top);
    const double height = plot.bottom() + kBottom;
    std::string  svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + px(kWidth) + "\" height=\"" + px(height) +
                      "\" viewBox=\"0 0 " + px(kWidth) + " " + px(height) +
                      "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n<rect width=\"100%\" "
                      "height=\"100%\" fill=\"#fff\"/>\n";
    svg += text_at(kLeft, 22, chart.title, "font-size=\"15\" font-weight=\"bold\"");
    svg += legend + plot.frame(chart);
    for (const Level & level : chart.levels) {
        svg += plot.level(level);
    }
    for (size_t i = 0; i < chart.series.size(); i++) {
        svg += plot.curve(chart.series[i], line_of(i), chart.markers, chart.series.size() - 1 - i);
    }
    return svg + "</svg>\n";
}

} // namespace penelope
