#include "report/report_series.h"

#include "task/compare.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace penelope {

namespace {

constexpr size_t kCurvePoints = 200; // of a loss curve; more updates than that are averaged

} // namespace

std::vector<ChartPoint> averaged(const std::vector<ChartPoint> & points) {
    const size_t            stretch = (points.size() + kCurvePoints - 1) / kCurvePoints;
    std::vector<ChartPoint> means;
    for (size_t first = 0; first < points.size(); first += stretch) {
        const size_t end = std::min(points.size(), first + stretch);
        double       x = 0, y = 0;
        for (size_t i = first; i < end; i++) {
            x += points[i].x;
            y += points[i].y;
        }
        means.push_back({ x / double(end - first), y / double(end - first) });
    }
    return means;
}

std::vector<ChartPoint> in_percent(std::vector<ChartPoint> points) {
    for (ChartPoint & p : points) {
        p.y *= 100;
    }
    return points;
}

Series by_depth(const ScoredMethod & method) {
    Series series{ method.label, {} };
    for (const Score & s : method.runs.front().scores) {
        std::vector<double> values;
        for (const Evaluation & run : method.runs) {
            for (const Score & other : run.scores) {
                if (other.n_steps == s.n_steps) {
                    values.push_back(100 * other.em);
                }
            }
        }
        if (values.size() == method.runs.size()) {
            series.points.push_back({ double(s.n_steps), mean_std(values).mean });
        }
    }
    return series;
}

Series by_question_depth(const ScoredMethod & method) {
    std::map<int, std::vector<double>> shares;
    for (const Evaluation & run : method.runs) {
        for (const DepthScore & d : chosen_score(run, method.label).by_depth) {
            shares[d.depth].push_back(100 * d.em);
        }
    }
    Series series{ method.label, {} };
    for (const auto & [depth, values] : shares) {
        series.points.push_back({ double(depth), mean_std(values).mean });
    }
    return series;
}

Series by_latency(const ScoredMethod & method) {
    Series series{ method.label, {} };
    for (const ChartPoint & depth : by_depth(method).points) {
        std::vector<double> ms;
        for (const Evaluation & run : method.runs) {
            for (const Score & s : run.scores) {
                if (s.n_steps == int(depth.x) && std::isfinite(s.latency_ms)) {
                    ms.push_back(s.latency_ms);
                }
            }
        }
        if (ms.empty()) {
            continue; // none was timed
        }
        const bool alone = method.runs.front().scores.size() == 1 && depth.x == 0;
        series.points.push_back({ mean_std(ms).mean, depth.y, alone ? "" : "K=" + std::to_string(int(depth.x)) });
    }
    return series;
}

} // namespace penelope
