// Line charts as SVG text.
#pragma once

#include "report/axis.h"

#include <string>
#include <vector>

namespace penelope {

struct ChartPoint {
    double      x, y;
    std::string label = ""; // beside the point
};

struct Series {
    std::string             name;
    std::vector<ChartPoint> points; // in drawing order
};

// A dashed line across, for what values are to be compared with.
struct Level {
    std::string name;
    double      y;
};

struct Chart {
    std::string         title, x_label, y_label;
    AxisStyle           x_style, y_style;
    bool                markers = false; // a dot at each point: for few of them
    std::vector<Series> series;
    std::vector<Level>  levels;
};

// A whole SVG document of a fixed width, higher when the legend takes several lines. Points that are not finite, or not positive
// on a logarithmic axis, are left out.
std::string draw_chart(const Chart & chart);

} // namespace penelope
