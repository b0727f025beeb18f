#include "forecast.h"

#include <cstdio>
#include <iterator>

namespace penelope {

double layer_cost(const LayerCosts & costs, int n_rows) {
    auto above = costs.lower_bound(n_rows);
    if (above == costs.begin()) {
        ++above;
    }
    if (above == costs.end()) {
        --above;
    }
    const auto   below = std::prev(above);
    const double slope = (above->second - below->second) / (above->first - below->first);
    return below->second + slope * (n_rows - below->first);
}

double penelope_forecast(const LayerCosts & costs, const LatentShape & shape, int n_steps) {
    const int n_layers = shape.end - shape.start;
    return n_layers * (n_steps * layer_cost(costs, shape.n_memory) + layer_cost(costs, shape.n_interface()));
}

double coconut_forecast(const LayerCosts & costs, int n_layer, int n_steps) {
    return n_layer * (n_steps + 1) * layer_cost(costs, 1);
}

std::string forecast_text(const LayerCosts & costs, const LatentShape & shape, int n_layer, int n_steps,
                          int n_thoughts) {
    char text[256];
    std::snprintf(
        text, sizeof(text),
        "predicted time after the prompt: penelope K=%d %.1f ms, coconut K=%d %.1f ms; a Penelope step is cheaper "
        "if %d rows cost less than %.2f times one row (measured: %.2f)",
        n_steps, penelope_forecast(costs, shape, n_steps), n_thoughts, coconut_forecast(costs, n_layer, n_thoughts),
        shape.n_memory, double(n_layer) / (shape.end - shape.start),
        layer_cost(costs, shape.n_memory) / layer_cost(costs, 1));
    return text;
}

} // namespace penelope
