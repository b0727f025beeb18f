#include "learn/report_page.h"

#include "base/atomic_file.h"
#include "base/format.h"
#include "report/chart.h"
#include "report/run_log.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>

namespace penelope {

namespace {

constexpr size_t kMostPoints = 150; // of a curve

// Light and dark by the system's choice; charts are drawn for light and inverted for dark.
constexpr const char * kStyle = R"css(
:root { color-scheme: light dark; --ink: #1b1b1f; --soft: #5c5f66; --line: #d9dbe0; --paper: #ffffff; --card: #f5f6f8;
  --good: #1a7f37; --bad: #b3261e; --mark: #e8f0fe; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6ea; --soft: #a0a4ad; --line: #3a3d44; --paper: #141518;
  --card: #1e2025; --good: #5fd07f; --bad: #ff8a80; --mark: #22304a; } svg { filter: invert(1) hue-rotate(180deg); } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.5rem; line-height: 1.3; margin: .5rem 0; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p.soft, td.soft, .soft { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
tr.chosen td { background: var(--mark); font-weight: 600; }
svg { width: 100%; height: auto; display: block; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
pre, code { font: 13px/1.45 ui-monospace, monospace; }
pre { background: var(--card); padding: .7rem; overflow-x: auto; border-radius: .4rem; }
.sample { border: 1px solid var(--line); border-radius: .5rem; padding: .8rem; margin: 1rem 0; }
.sample .question { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 0 .6rem; }
.answers { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 13rem), 1fr)); gap: .6rem; }
.answer { background: var(--card); border-radius: .4rem; padding: .5rem .7rem; min-width: 0; }
.answer b { display: block; font-size: .8rem; color: var(--soft); font-weight: 600; }
.answer div { white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.45 ui-monospace, monospace; }
.right b::after { content: " right"; color: var(--good); } .wrong b::after { content: " wrong"; color: var(--bad); }
)css";

constexpr const char * kTableNotes =
    "<p class=\"soft\">Tokens, time (median) and sequential layer applications are of a whole answer. K of the marked "
    "row was chosen on validation questions. Control: the same training without a latent step. Memory swapped: "
    "answered from the latent memory of another question.</p>\n";

std::string escaped(const std::string & text) {
    std::string out;
    for (char c : text) {
        switch (c) {
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '&': out += "&amp;"; break;
            case '"': out += "&quot;"; break;
            default: out += c;
        }
    }
    return out;
}

std::string number(const char * format, double value) {
    char text[64];
    std::snprintf(text, sizeof(text), format, value);
    return text;
}

std::string in_tag(const char * tag, const std::string & text) {
    return std::string("<") + tag + ">" + escaped(text) + "</" + tag + ">";
}

std::string score_table(const std::vector<ScoreRow> & rows) {
    std::string html = "<div class=\"scroll\"><table><tr><th>model</th><th>right</th><th>95 % interval</th>"
                       "<th>questions</th><th>tokens</th><th>time</th>"
                       "<th>layers</th></tr>\n";
    for (const ScoreRow & row : rows) {
        const ScoredLine & l    = row.line;
        const bool         runs = std::isfinite(l.layer_applications);
        html += std::string(row.is_chosen ? "<tr class=\"chosen\">" : "<tr>") + in_tag("td", row.name) +
                in_tag("td", percent_text(l.em)) +
                in_tag("td", number("%.1f", 100 * l.low) + " to " + number("%.1f", 100 * l.high)) +
                in_tag("td", std::to_string(l.n)) + in_tag("td", runs ? number("%.1f", l.output_tokens) : "") +
                in_tag("td", std::isfinite(l.latency_ms) ? format_duration(l.latency_ms) : "") +
                in_tag("td", runs ? number("%.0f", l.layer_applications) : "") + "</tr>\n";
    }
    return html + "</table></div>\n";
}

// The chart without its white ground, so that the page's shows.
std::string inline_chart(const Chart & chart) {
    std::string       svg    = draw_chart(chart);
    const std::string ground = "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    const size_t      at     = svg.find(ground);
    return "<div>" + (at == std::string::npos ? svg : svg.erase(at, ground.size())) + "</div>\n";
}

// K of "latent K=3"; negative: another row.
int steps_of(const ScoreRow & row) {
    const std::string mark = "latent K=";
    return row.name.rfind(mark, 0) == 0 && std::isdigit(static_cast<unsigned char>(row.name[mark.size()]))
               ? std::stoi(row.name.substr(mark.size()))
               : -1;
}

Chart chart_over_steps(const std::vector<ScoreRow> & rows, const VerdictInput & input) {
    Chart chart;
    chart.title         = "Right answers against latent steps";
    chart.x_label       = "latent steps K";
    chart.x_style.whole = true;
    chart.y_label       = "right (%)";
    chart.y_style.share = true;
    chart.markers       = true;
    Series latent{ "latent steps", {} };
    for (const ScoreRow & row : rows) {
        if (steps_of(row) >= 0) {
            latent.points.push_back({ double(steps_of(row)), 100 * row.line.em });
        }
    }
    chart.series.push_back(latent);
    chart.levels.push_back({ "written steps", 100 * input.visible->em });
    if (input.control) {
        chart.levels.push_back({ "control", 100 * input.control->em });
    }
    chart.levels.push_back({ "most frequent answer", 100 * input.majority });
    return chart;
}

Chart chart_over_time(const std::vector<ScoreRow> & rows) {
    Chart chart;
    chart.title         = "Right answers against the time of an answer";
    chart.x_label       = "ms";
    chart.y_label       = "right (%)";
    chart.y_style.share = true;
    chart.markers       = true;
    Series latent{ "latent steps", {} };
    for (const ScoreRow & row : rows) {
        if (!std::isfinite(row.line.latency_ms)) {
            continue;
        }
        const ChartPoint point{ row.line.latency_ms, 100 * row.line.em };
        if (steps_of(row) >= 0) {
            latent.points.push_back({ point.x, point.y, row.is_chosen ? row.name.substr(7) : "" });
        } else {
            chart.series.push_back({ row.name, { point } });
        }
    }
    if (!latent.points.empty()) {
        chart.series.insert(chart.series.begin(), latent);
    }
    return chart;
}

Chart chart_over_depth(const std::vector<ScoredRun::ByDepth> & depths) {
    Chart chart;
    chart.title         = "Right answers by number of written steps in the data";
    chart.x_label       = "steps of the question";
    chart.x_style.whole = true;
    chart.y_label       = "right (%)";
    chart.y_style.share = true;
    chart.markers       = true;
    Series visible{ "written steps", {} }, latent{ "latent steps", {} }, control{ "control", {} };
    for (const ScoredRun::ByDepth & d : depths) {
        const double x = double(d.n_steps);
        visible.points.push_back({ x, 100 * d.visible });
        latent.points.push_back({ x, 100 * d.latent });
        control.points.push_back({ x, 100 * d.control });
    }
    for (const Series & series : { visible, latent, control }) {
        if (std::isfinite(series.points.front().y)) {
            chart.series.push_back(series);
        }
    }
    return chart;
}

std::string answer_card(const std::string & name, const std::string & text, const char * mark) {
    return "<div class=\"answer " + std::string(mark) + "\"><b>" + escaped(name) + "</b><div>" + escaped(text) +
           "</div></div>\n";
}

const char * mark_of(bool is_right) {
    return is_right ? "right" : "wrong";
}

std::string sample_card(const SampleAnswer & s, const VerdictInput & input) {
    std::string gold;
    for (const std::string & step : s.gold_steps) {
        gold += step + "\n";
    }
    std::string html = "<div class=\"sample\"><p class=\"question\">" + escaped(s.question) +
                       "</p><div class=\"answers\">\n" + answer_card("gold", gold + s.gold, "gold");
    if (input.base) {
        html += answer_card("base, untouched", s.base, mark_of(s.base_right));
    }
    html += answer_card(input.has_steps ? "written steps" : "trained", s.visible, mark_of(s.visible_right));
    if (input.latent) {
        std::string steps;
        for (size_t t = 0; t < s.latent_steps.size(); t++) {
            steps += "step " + std::to_string(t + 1) + ": " + s.latent_steps[t] + "\n";
        }
        html += answer_card("latent steps, decoded", steps + s.latent, mark_of(s.latent_right));
    }
    if (input.control) {
        html += answer_card("control", s.control, mark_of(s.control_right));
    }
    return html + "</div></div>\n";
}

// Loss of every stage over its updates.
Chart chart_of_loss(const RunFiles & files, const std::vector<LearnStage> & stages) {
    Chart chart;
    chart.title               = "Training loss";
    chart.x_label             = "update";
    chart.y_label             = "loss";
    chart.y_style.logarithmic = true;
    for (LearnStage stage : stages) {
        const std::vector<ChartPoint> all   = read_run_log(files.folder(stage)).loss;
        const size_t                  every = all.size() / kMostPoints + 1; // mean of so many updates
        Series                        series{ stage_name(stage), {} };
        for (size_t i = 0; i + every <= all.size(); i += every) {
            double sum = 0, n = 0;
            for (size_t k = 0; k < every; k++) {
                sum += all[i + k].y;
                n += all[i + k].y > 0; // 0: K was too small for every example of the batch
            }
            if (n > 0) {
                series.points.push_back({ all[i + every / 2].x, sum / n });
            }
        }
        chart.series.push_back(series);
    }
    return chart;
}

} // namespace

void write_report_page(const ScoredRun & scored, const LearnResult & result, const LearnOptions & options,
                       const RunFiles & files, const std::vector<LearnStage> & stages, const std::string & path) {
    const std::string name = std::filesystem::path(options.data).filename().string();
    std::string       html =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>penelope learn: " +
        escaped(name) + "</title><style>" + kStyle + "</style></head><body>\n";
    html += "<p class=\"soft\">penelope learn &middot; " + escaped(name) + " &middot; " +
            escaped(options.from_scratch.empty() ? std::filesystem::path(options.base).filename().string()
                                                 : "new backbone, " + options.from_scratch) +
            "</p>\n<h1>" + escaped(result.verdict.headline) + "</h1>\n<p>" + escaped(result.verdict.advice) + "</p>\n";
    for (const std::string & note : result.notes) {
        html += "<p class=\"soft\">" + escaped(note) + "</p>\n";
    }
    if (!scored.rows.empty()) {
        html += "<h2>Scores on questions never trained on</h2>\n" + score_table(scored.rows) + kTableNotes;
    }
    html += "<div class=\"charts\">\n";
    if (scored.input.latent) {
        html += inline_chart(chart_over_steps(scored.rows, scored.input));
    }
    if (!scored.rows.empty()) {
        html += inline_chart(chart_over_time(scored.rows));
    }
    if (scored.by_depth.size() > 1) {
        html += inline_chart(chart_over_depth(scored.by_depth));
    }
    html += inline_chart(chart_of_loss(files, stages)) + "</div>\n";
    if (!scored.samples.empty()) {
        html += "<h2>Answers side by side</h2>\n";
    }
    for (const SampleAnswer & sample : scored.samples) {
        html += sample_card(sample, scored.input);
    }
    html += "<h2>Use it</h2>\n<pre>";
    for (const std::string & command : result.commands) {
        html += escaped(command) + "\n";
    }
    write_file(path, html + "</pre>\n</body></html>\n", true);
}

} // namespace penelope
