// `penelope report`: a Markdown page with results in the form of the paper's table, a table of training runs, and SVG
// charts of loss and exact match over updates, and of exact match over K, latency and question depth.
#pragma once

#include <string>
#include <vector>

namespace penelope {

// "PATH" or "LABEL=PATH". A folder is a training run; a file holds what penelope eval --json printed, or its
// predictions. Evaluations under one label are repetitions of one method: the table gives their mean and standard
// deviation.
struct ReportInput {
    std::string label, path;
};

// Throws Error(usage) for an empty label or path. Default label: name of the folder, or of the file without extension.
ReportInput parse_report_input(const std::string & text);

struct ReportFiles {
    std::string              page; // report.md
    std::vector<std::string> charts;
};

// Creates `out` and writes into it after all inputs were read. Throws Error naming a missing or damaged input, and for
// existing files unless `force`.
ReportFiles write_report(const std::vector<ReportInput> & inputs, const std::string & out, bool force);

} // namespace penelope
