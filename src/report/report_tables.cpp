#include "report/report_tables.h"

#include "base/format.h"
#include "base/markdown_table.h"
#include "base/number_text.h"
#include "task/compare.h"

#include <cmath>
#include <map>
#include <set>

namespace penelope {

namespace {

// Empty for a value that was not measured.
std::string number(double value, int n_digits) {
    return std::isfinite(value) ? fixed(value, n_digits) : "";
}

std::string with_std(const MeanStd & s, int n_digits) {
    return number(s.mean, n_digits) + (s.sd > 0 ? " ± " + number(s.sd, n_digits) : "");
}

template <typename Value> MeanStd mean_std_of(const ScoredMethod & method, Value value) {
    std::vector<double> values;
    for (const Evaluation & run : method.runs) {
        if (const double v = value(chosen_score(run, method.label)); std::isfinite(v)) {
            values.push_back(v);
        }
    }
    return values.empty() ? MeanStd{ NAN, 0 } : mean_std(values);
}

// "5", or "5, 3, 1" for runs that differ. text: of an evaluation and its score.
template <typename Text> std::string values_of(const ScoredMethod & method, Text text) {
    std::vector<std::string> texts;
    for (const Evaluation & run : method.runs) {
        texts.push_back(text(run, chosen_score(run, method.label)));
    }
    const bool same = std::set<std::string>(texts.begin(), texts.end()).size() == 1;
    return same ? texts.front() : join(texts, ", ");
}

std::string depth_text(const Evaluation & run, const Score & s) {
    return run.is_visible() ? "" : steps_label(s.n_steps);
}

std::string applications_text(const Evaluation & run, const Score & s) {
    return std::to_string(s.layer_applications) + (run.is_visible() ? " a token" : "");
}

} // namespace

std::string results_table(const std::vector<ScoredMethod> & methods) {
    MarkdownTable table;
    table.columns = {
        "method", "runs", "K", "EM (%)", "parsed (%)", "output tokens", "latency (ms)", "layer applications"
    };
    table.numeric.assign(table.columns.size(), true);
    table.numeric[0] = false;
    for (const ScoredMethod & m : methods) {
        MeanStd latency = mean_std_of(m, [](const Score & s) { return s.latency_ms; });
        if (m.runs.size() == 1) {
            latency.sd = chosen_score(m.runs.front(), m.label).latency_sd;
        }
        table.rows.push_back({ m.label, std::to_string(m.runs.size()), values_of(m, depth_text),
                               with_std(mean_std_of(m, [](const Score & s) { return 100 * s.em; }), 2),
                               number(mean_std_of(m, [](const Score & s) { return 100 * s.parsed; }).mean, 2),
                               number(mean_std_of(m, [](const Score & s) { return s.output_tokens; }).mean, 2),
                               with_std(latency, 2), values_of(m, applications_text) });
    }
    std::string text = "## Results\n\n" + table.text(false);
    text += "\nEM: mean ± sample standard deviation over the runs, each at its own K. Latency: of questions answered "
            "one at a time; of several runs mean ± "
            "standard deviation of their means, of one run that over the questions. Layer applications: sequential, "
            "before the first answer token.\n";
    const Evaluation & first = methods.front().runs.front();
    text += "Task: " + first.task + ", " + std::to_string(first.scores.front().n) + " questions.\n";
    if (!first.chance.empty()) {
        std::vector<std::string> levels;
        for (const ChanceLevel & level : first.chance) {
            levels.push_back(number(100 * level.share, 2) + " % (" + level.how + ")");
        }
        text += "Without reasoning: " + join(levels, ", ") + ".\n";
    }
    return text;
}

std::string question_depth_table(const std::vector<ScoredMethod> & methods) {
    std::set<int> depths;
    for (const ScoredMethod & method : methods) {
        for (const ChartPoint & p : by_question_depth(method).points) {
            depths.insert(int(p.x));
        }
    }
    if (depths.size() < 2) {
        return "";
    }
    MarkdownTable table{ { "method" }, { false }, {} };
    for (int depth : depths) {
        table.columns.push_back(std::to_string(depth));
        table.numeric.push_back(true);
    }
    for (const ScoredMethod & method : methods) {
        std::map<int, double> cells;
        for (const ChartPoint & p : by_question_depth(method).points) {
            cells[int(p.x)] = p.y;
        }
        table.rows.push_back({ method.label });
        for (int depth : depths) {
            const auto cell = cells.find(depth);
            table.rows.back().push_back(cell == cells.end() ? "" : number(cell->second, 1));
        }
    }
    return "## Exact match (%) by depth of the question\n\n" + table.text(false);
}

std::string runs_table(const std::vector<NamedRun> & runs) {
    MarkdownTable table;
    table.columns = { "run", "updates", "last loss", "valid EM (%)", "K", "target tokens/s", "time", "peak memory" };
    table.numeric.assign(table.columns.size(), true);
    table.numeric[0] = false;
    for (const auto & [label, log] : runs) {
        const double exact = log.k_default >= 0 && size_t(log.k_default) < log.exact_by_depth.size()
                                 ? log.exact_by_depth[size_t(log.k_default)]
                                 : NAN;
        table.rows.push_back({ label, std::to_string(log.n_updates), number(averaged(log.loss).back().y, 4),
                               number(100 * exact, 2), log.k_default < 0 ? "" : std::to_string(log.k_default),
                               number(log.tokens_per_second, 0), format_duration(log.seconds * 1000),
                               format_bytes(log.peak_memory) });
    }
    return "## Training runs\n\n" + table.text(false) +
           "\nValid EM: of the finished run's best weights on the whole validation set, at the K it chose.\n";
}

} // namespace penelope
