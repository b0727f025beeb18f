// Runs and evaluations for people: a Markdown page with the results of the methods in the shape of the paper's table, a
// table of the training runs, and charts of loss and exact match over the updates, and of exact match against K, latency
// and the depth of the question.
#pragma once

#include <string>
#include <vector>

namespace penelope {

// "PATH" or "LABEL=PATH". A folder is a training run; a file holds what penelope eval --json printed, or its predictions.
// Evaluations under one label are repetitions of one method: the table gives their mean and standard deviation.
struct ReportInput {
    std::string label, path;
};

// Throws Error(usage) for an empty label or path. Without a label it is the name of the folder, or of the file without its end.
ReportInput parse_report_input(const std::string & text);

struct ReportFiles {
    std::string              page; // report.md
    std::vector<std::string> charts;
};

// Writes into `out`, which is made. Everything is read before anything is written. Throws Error naming the input whose files
// are missing or damaged, and for existing files unless `force`.
ReportFiles write_report(const std::vector<ReportInput> & inputs, const std::string & out, bool force);

} // namespace penelope
