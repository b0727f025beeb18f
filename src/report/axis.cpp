#include "report/axis.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace penelope {

namespace {

constexpr int    kIntervals = 6;    // between ticks, about
constexpr double kMargin    = 0.03; // of the range, beyond the data of a tight axis
constexpr double kLogFrom   = 8;    // ratio of the ends from which a logarithm pays

// The smallest of 1, 2, 5 times a power of ten that is not below `value`.
double round_up(double value) {
    const double power = std::pow(10.0, std::floor(std::log10(value)));
    for (double lead : { 1.0, 2.0, 5.0 }) {
        if (value <= lead * power * (1 + 1e-9)) {
            return lead * power;
        }
    }
    return 10 * power;
}

int digits_for(double step) {
    return std::max(0, int(-std::floor(std::log10(step) + 1e-9)));
}

void place_linear_ticks(Axis & axis, const AxisStyle & style, double low, double high) {
    double step = round_up((high - low) / kIntervals);
    if (style.whole) {
        step = std::max(1.0, std::round(step));
    }
    // Numbers of ticks are counted, not added up: 0.1 ten times is not 1.
    const double slack = 1e-9 * (high - low) / step;
    double       first = std::floor(low / step + slack), last = std::ceil(high / step - slack);
    axis.low  = first * step;
    axis.high = last * step;
    if (style.tight) {
        const double margin = kMargin * (high - low);
        // A count that starts near zero is shown from zero.
        axis.low  = low >= 0 && low < 0.1 * high ? 0 : low - margin;
        axis.high = high + margin;
        if (low == 0) {
            axis.low = -margin;
        }
        first = std::ceil(axis.low / step - slack);
        last  = std::floor(axis.high / step + slack);
    }
    for (double i = first; i <= last; i++) {
        axis.ticks.push_back(i == 0 ? 0.0 : i * step);
    }
    axis.n_digits = digits_for(step);
}

void place_log_ticks(Axis & axis, double low, double high) {
    const int           first = int(std::floor(std::log10(low))), last = int(std::ceil(std::log10(high)));
    const bool          only_powers = last - first > 4;
    std::vector<double> all;
    for (int power = first; power <= last; power++) {
        for (double lead : { 1.0, 2.0, 5.0 }) {
            if (lead == 1 || !only_powers) {
                all.push_back(lead * std::pow(10.0, power));
            }
        }
    }
    const auto begin = std::upper_bound(all.begin(), all.end(), low * (1 + 1e-9)) - 1;
    const auto end   = std::lower_bound(all.begin(), all.end(), high * (1 - 1e-9)) + 1;
    axis.ticks.assign(begin, end);
    axis.low         = axis.ticks.front();
    axis.high        = axis.ticks.back();
    axis.logarithmic = true;
}

} // namespace

double Axis::fraction(double value) const {
    return logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
}

std::string Axis::text(double tick) const {
    char buffer[64];
    std::snprintf(buffer, sizeof(buffer), "%.*f", logarithmic ? digits_for(tick) : n_digits, tick);
    return buffer;
}

Axis make_axis(const std::vector<double> & values, const AxisStyle & style) {
    std::vector<double> finite;
    std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
                 [](double value) { return std::isfinite(value); });
    double low = 0, high = 1;
    if (!finite.empty()) {
        low  = *std::min_element(finite.begin(), finite.end());
        high = *std::max_element(finite.begin(), finite.end());
    }
    if (high - low <= 1e-9 * std::fabs(high)) {
        const double half = std::max(0.5, 0.1 * std::fabs(high));
        low -= half;
        high += half;
    }
    if (style.share) {
        low  = 0;
        high = 100;
    }
    Axis axis;
    if (style.logarithmic && low > 0 && high / low > kLogFrom) {
        place_log_ticks(axis, low, high);
    } else {
        place_linear_ticks(axis, style, low, high);
    }
    return axis;
}

} // namespace penelope
