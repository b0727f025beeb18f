#include "report/report.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/format.h"
#include "base/output_dir.h"
#include "report/run_log.h"
#include "task/compare.h"
#include "task/evaluation_file.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr size_t kCurvePoints = 200; // of a loss curve; more updates than that are averaged

struct NamedRun {
    std::string label;
    RunLog      log;
};

// The repetitions of one method.
struct ScoredMethod {
    std::string             label;
    std::vector<Evaluation> runs;
};

std::string fixed(double value, int n_digits) {
    char text[64];
    std::snprintf(text, sizeof(text), "%.*f", n_digits, value);
    return std::isfinite(value) ? text : "";
}

std::string with_spread(const Spread & s, int n_digits) {
    return fixed(s.mean, n_digits) + (s.sd > 0 ? " ± " + fixed(s.sd, n_digits) : "");
}

std::string in_cell(const std::string & text) {
    std::string out;
    for (char c : text) {
        out += c == '|' ? "\\|" : c == '\n' ? " " : std::string(1, c);
    }
    return out;
}

// Means over equal stretches, so that a curve of thousands of noisy values can be read.
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

template <typename Value> Spread spread_of(const ScoredMethod & method, Value value) {
    std::vector<double> values;
    for (const Evaluation & run : method.runs) {
        if (const double v = value(chosen_score(run, method.label)); std::isfinite(v)) {
            values.push_back(v);
        }
    }
    return values.empty() ? Spread{ NAN, 0 } : spread(values);
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

std::string results_table(const std::vector<ScoredMethod> & methods) {
    std::string text = "## Results\n\n| method | runs | K | EM (%) | parsed (%) | output tokens | latency (ms) | layer "
                       "applications |\n"
                       "|---|---:|---:|---:|---:|---:|---:|---:|\n";
    for (const ScoredMethod & m : methods) {
        Spread latency = spread_of(m, [](const Score & s) { return s.latency_ms; });
        if (m.runs.size() == 1) {
            latency.sd = chosen_score(m.runs.front(), m.label).latency_sd;
        }
        text += "| " + in_cell(m.label) + " | " + std::to_string(m.runs.size()) + " | " + values_of(m, depth_text) +
                " | " + with_spread(spread_of(m, [](const Score & s) { return 100 * s.em; }), 2) + " | " +
                fixed(spread_of(m, [](const Score & s) { return 100 * s.parsed; }).mean, 2) + " | " +
                fixed(spread_of(m, [](const Score & s) { return s.output_tokens; }).mean, 2) + " | " +
                with_spread(latency, 2) + " | " + values_of(m, applications_text) + " |\n";
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

// As far as results tell: how many there are, of which task, and what a guess gets of them.
bool same_questions(const Evaluation & a, const Evaluation & b) {
    const auto equal = [](const ChanceLevel & x, const ChanceLevel & y) {
        return x.how == y.how && std::abs(x.share - y.share) < 1e-9;
    };
    return a.task == b.task && a.scores.front().n == b.scores.front().n &&
           std::equal(a.chance.begin(), a.chance.end(), b.chance.begin(), b.chance.end(), equal);
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

// Mean over the runs at each K that all of them were scored at.
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
            series.points.push_back({ double(s.n_steps), spread(values).mean });
        }
    }
    return series;
}

// Mean over the runs, each at its own K, of the questions of one depth.
Series by_question_depth(const ScoredMethod & method) {
    std::map<int, std::vector<double>> shares;
    for (const Evaluation & run : method.runs) {
        for (const DepthScore & d : chosen_score(run, method.label).by_depth) {
            shares[d.depth].push_back(100 * d.em);
        }
    }
    Series series{ method.label, {} };
    for (const auto & [depth, values] : shares) {
        series.points.push_back({ double(depth), spread(values).mean });
    }
    return series;
}

// Empty when the questions are all of one depth.
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
        series.points.push_back({ spread(ms).mean, depth.y, alone ? "" : "K=" + std::to_string(int(depth.x)) });
    }
    return series;
}

// The page and its charts, which appear together or not at all.
class Page {
  public:
    Page(const std::string & out, bool force) : out_(out), folder_(out, force) {}

    void add(const std::string & text) { text_ += "\n" + text; }

    // Leaves out a chart that has nothing to show.
    void add(const std::string & name, const Chart & chart) {
        const bool empty =
            std::all_of(chart.series.begin(), chart.series.end(), [](const Series & s) { return s.points.empty(); });
        if (empty) {
            return;
        }
        files_.charts.push_back(write(name + ".svg", draw_chart(chart)));
        text_ += "\n![" + chart.title + "](" + name + ".svg)\n";
    }

    ReportFiles finish() {
        files_.page = write("report.md", text_);
        folder_.commit();
        return files_;
    }

  private:
    std::string write(const std::string & name, const std::string & text) {
        write_file(folder_.file(name), text, true);
        return (fs::path(out_) / name).string();
    }

    std::string out_;
    OutputDir   folder_;
    std::string text_ = "# Report\n";
    ReportFiles files_;
};

constexpr AxisStyle kShare{ false, false, false, true };

void add_run_charts(Page & page, const std::vector<NamedRun> & runs) {
    Chart loss{ "Training loss", "update", "cross-entropy per target token", {}, {}, false, {}, {} };
    loss.x_style.tight       = true;
    loss.y_style.logarithmic = true;
    Chart valid_loss         = loss;
    valid_loss.title         = "Validation loss";
    valid_loss.markers       = true;
    Chart exact              = valid_loss;
    exact.title              = "Exact match on validation";
    exact.y_label            = "exact match (%)";
    exact.y_style            = kShare;
    Chart depth              = exact;
    depth.title              = "Exact match on validation against latent steps";
    depth.x_label            = "K";
    depth.x_style            = { false, true, true };
    for (const auto & [label, log] : runs) {
        loss.series.push_back({ label, averaged(log.loss) });
        valid_loss.series.push_back({ label, log.valid_loss });
        exact.series.push_back({ label, in_percent(log.valid_exact) });
        if (log.exact_by_depth.size() > 1) {
            depth.series.push_back({ label, {} });
            for (size_t k = 0; k < log.exact_by_depth.size(); k++) {
                depth.series.back().points.push_back({ double(k), 100 * log.exact_by_depth[k] });
            }
        }
    }
    page.add("loss", loss);
    page.add("valid-loss", valid_loss);
    page.add("valid-exact", exact);
    page.add("valid-depth", depth);
}

void add_result_charts(Page & page, const std::vector<ScoredMethod> & methods) {
    Chart depth{
        "Exact match against latent steps", "K", "exact match (%)", { false, true, true }, kShare, true, {}, {}
    };
    Chart latency{ "Exact match against latency", "ms per question", "exact match (%)", {}, kShare, true, {}, {} };
    latency.x_style.tight = true;
    for (const ScoredMethod & method : methods) {
        if (Series series = by_depth(method); series.points.size() > 1) {
            depth.series.push_back(std::move(series));
        }
        latency.series.push_back(by_latency(method));
    }
    if (const auto & chance = methods.front().runs.front().chance; !chance.empty()) {
        depth.levels.push_back({ chance.front().how, 100 * chance.front().share });
        latency.levels = depth.levels;
    }
    page.add("depth", depth);
    page.add("latency", latency);

    if (const std::string table = question_depth_table(methods); !table.empty()) {
        page.add(table);
        Chart question{ "Exact match against the depth of the question",
                        "depth",
                        "exact match (%)",
                        { false, true, true },
                        kShare,
                        true,
                        {},
                        {} };
        for (const ScoredMethod & method : methods) {
            question.series.push_back(by_question_depth(method));
        }
        page.add("question-depth", question);
    }
}

} // namespace

ReportInput parse_report_input(const std::string & text) {
    ReportInput  input{ "", text };
    const size_t equals = text.find('=');
    if (equals != std::string::npos && !fs::exists(text)) {
        input = { text.substr(0, equals), text.substr(equals + 1) };
        if (input.label.empty() || input.path.empty()) {
            throw Error(ErrorKind::usage, in_quotes(text) + ": is not LABEL=PATH", "e.g. \"Visible CoT=cot.json\"");
        }
        return input;
    }
    const fs::path path = fs::path(text).lexically_normal();
    const fs::path name = path.has_filename() ? path.filename() : path.parent_path().filename();
    input.label         = fs::is_directory(path) ? name.string() : name.stem().string();
    return input;
}

ReportFiles write_report(const std::vector<ReportInput> & inputs, const std::string & out, bool force) {
    std::vector<NamedRun>     runs;
    std::vector<ScoredMethod> methods;
    for (const ReportInput & input : inputs) {
        if (!fs::exists(input.path)) {
            throw Error(ErrorKind::not_found, input.path + ": no such file or folder",
                        "give run folders of penelope train, and results of penelope eval");
        }
        if (fs::is_directory(input.path)) {
            runs.push_back({ input.label, read_run_log(input.path) });
            continue;
        }
        auto method = std::find_if(methods.begin(), methods.end(),
                                   [&](const ScoredMethod & m) { return m.label == input.label; });
        if (method == methods.end()) {
            method = methods.insert(methods.end(), { input.label, {} });
        }
        for (Evaluation & evaluation : read_evaluations(input.path)) {
            const Evaluation & first = methods.front().runs.empty() ? evaluation : methods.front().runs.front();
            if (!same_questions(first, evaluation)) {
                throw Error(ErrorKind::format,
                            input.path + ": was scored on other questions than the results before it",
                            "a report compares results on one set of questions");
            }
            method->runs.push_back(std::move(evaluation));
        }
    }
    std::error_code ec;
    fs::create_directories(fs::absolute(out).parent_path(), ec);
    if (ec) {
        throw Error(ErrorKind::io, out + ": cannot be made: " + ec.message(), "choose another --out");
    }
    Page page(out, force);
    if (!methods.empty()) {
        page.add(results_table(methods));
        add_result_charts(page, methods);
    }
    if (!runs.empty()) {
        page.add(runs_table(runs));
        add_run_charts(page, runs);
    }
    return page.finish();
}

} // namespace penelope
