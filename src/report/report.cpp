#include "report/report.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/format.h"
#include "base/output_dir.h"
#include "report/report_tables.h"
#include "task/evaluation_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace penelope {

namespace fs = std::filesystem;

namespace {

// As far as results tell: how many there are, of which task, and what a guess gets of them.
bool same_questions(const Evaluation & a, const Evaluation & b) {
    const auto equal = [](const ChanceLevel & x, const ChanceLevel & y) {
        return x.how == y.how && std::abs(x.share - y.share) < 1e-9;
    };
    return a.task == b.task && a.scores.front().n == b.scores.front().n &&
           std::equal(a.chance.begin(), a.chance.end(), b.chance.begin(), b.chance.end(), equal);
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

constexpr AxisStyle kPercentAxis{ false, false, false, true };

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
    exact.y_style            = kPercentAxis;
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
        "Exact match against latent steps", "K", "exact match (%)", { false, true, true }, kPercentAxis, true, {}, {}
    };
    Chart latency{
        "Exact match against latency", "ms per question", "exact match (%)", {}, kPercentAxis, true, {}, {}
    };
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
                        kPercentAxis,
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
            throw Error(ErrorKind::usage, in_quotes(text) + ": expected LABEL=PATH", "e.g. \"Visible CoT=cot.json\"");
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
                throw Error(ErrorKind::format, input.path + ": evaluated on other questions than the results before it",
                            "a report compares results on one set of questions");
            }
            method->runs.push_back(std::move(evaluation));
        }
    }
    std::error_code ec;
    fs::create_directories(fs::absolute(out).parent_path(), ec);
    if (ec) {
        throw Error(ErrorKind::io, out + ": cannot create directory: " + ec.message(), "choose another --out");
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
