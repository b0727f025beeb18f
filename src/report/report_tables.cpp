#include "report/report_tables.h"

#include "base/format.h"
#include "task/compare.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <set>

namespace penelope {

namespace {

std::string fixed(double value, int n_digits) {
    char text[64];
    std::snprintf(text, sizeof(text), "%.*f", n_digits, value);
    return std::isfinite(value) ? text : "";
}

std::string with_std(const MeanStd & s, int n_digits) {
    return fixed(s.mean, n_digits) + (s.sd > 0 ? " ± " + fixed(s.sd, n_digits) : "");
}

std::string in_cell(const std::string & text) {
    std::string out;
    for (char c : text) {
        out += c == '|' ? "\\|" : c == '\n' ? " " : std::string(1, c);
    }
    return out;
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
    std::string text = "## Results\n\n| method | runs | K | EM (%) | parsed (%) | output tokens | latency (ms) | layer "
                       "applications |\n"
                       "|---|---:|---:|---:|---:|---:|---:|---:|\n";
    for (const ScoredMethod & m : methods) {
        MeanStd latency = mean_std_of(m, [](const Score & s) { return s.latency_ms; });
        if (m.runs.size() == 1) {
            latency.sd = chosen_score(m.runs.front(), m.label).latency_sd;
        }
        text += "| " + in_cell(m.label) + " | " + std::to_string(m.runs.size()) + " | " + values_of(m, depth_text) +
                " | " + with_std(mean_std_of(m, [](const Score & s) { return 100 * s.em; }), 2) + " | " +
                fixed(mean_std_of(m, [](const Score & s) { return 100 * s.parsed; }).mean, 2) + " | " +
                fixed(mean_std_of(m, [](const Score & s) { return s.output_tokens; }).mean, 2) + " | " +
                with_std(latency, 2) + " | " + values_of(m, applications_text) + " |\n";
    }
    text += "\nEM: mean ± sample standard deviation over the runs, each at its own K. Latency: of questions answered "
            "one at a time; of several runs mean ± "
            "standard deviation of their means, of one run that over the questions. Layer applications: sequential, "
            "before the first answer token.\n";
    const Evaluation & first = methods.front().runs.front();
    text += "Task: " + first.task + ", " + std::to_string(first.scores.front().n) + " questions.\n";
    if (!first.chance.empty()) {
        std::vector<std::string> levels;
        for (const ChanceLevel & level : first.chance) {
            levels.push_back(fixed(100 * level.share, 2) + " % (" + level.how + ")");
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
    std::string head = "| method |", line = "|---|", rows;
    for (int depth : depths) {
        head += " " + std::to_string(depth) + " |";
        line += "---:|";
    }
    for (const ScoredMethod & method : methods) {
        std::map<int, double> cells;
        for (const ChartPoint & p : by_question_depth(method).points) {
            cells[int(p.x)] = p.y;
        }
        rows += "| " + in_cell(method.label) + " |";
        for (int depth : depths) {
            const auto cell = cells.find(depth);
            rows += (cell == cells.end() ? "" : " " + fixed(cell->second, 1)) + " |";
        }
        rows += "\n";
    }
    return "## Exact match (%) by depth of the question\n\n" + head + "\n" + line + "\n" + rows;
}

std::string runs_table(const std::vector<NamedRun> & runs) {
    std::string text = "## Training runs\n\n| run | updates | last loss | valid EM (%) | K | target tokens/s | time | "
                       "peak memory |\n|---|---:|---:|---:|---:|---:|---:|---:|\n";
    for (const auto & [label, log] : runs) {
        const double exact = log.k_default >= 0 && size_t(log.k_default) < log.exact_by_depth.size()
                                 ? log.exact_by_depth[size_t(log.k_default)]
                                 : NAN;
        text += "| " + in_cell(label) + " | " + std::to_string(log.n_updates) + " | " +
                fixed(averaged(log.loss).back().y, 4) + " | " + fixed(100 * exact, 2) + " | " +
                (log.k_default < 0 ? "" : std::to_string(log.k_default)) + " | " + fixed(log.tokens_per_second, 0) +
                " | " + format_duration(log.seconds * 1000) + " | " + format_bytes(log.peak_memory) + " |\n";
    }
    return text + "\nValid EM: of the finished run's best weights on the whole validation set, at the K it chose.\n";
}

} // namespace penelope
