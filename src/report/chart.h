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

// A dashed horizontal line, e.g. a baseline.
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

// An SVG document of fixed width; the height grows with the legend. Skips points that are not finite, or not positive
// on a logarithmic axis.
std::string draw_chart(const Chart & chart);

} // namespace penelope
