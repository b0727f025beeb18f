// An axis of a chart: the range it shows, its ticks at round numbers and their texts.
#pragma once

#include <string>
#include <vector>

namespace penelope {

struct AxisStyle {
    bool logarithmic = false; // where all values are positive and span more than a factor of 8, else linear
    bool whole       = false; // ticks at whole numbers only
    bool tight       = false; // ends near the data instead of at ticks
    bool share       = false; // percent of a whole: from 0 to 100, whatever the data
};

struct Axis {
    double              low = 0, high = 1;
    bool                logarithmic = false;
    std::vector<double> ticks; // ascending, inside [low, high]
    int                 n_digits = 0;

    double      fraction(double value) const; // 0 at low, 1 at high
    std::string text(double tick) const;
};

// An axis that covers the finite values; 0 to 1 if there are none.
Axis make_axis(const std::vector<double> & values, const AxisStyle & style = {});

} // namespace penelope
