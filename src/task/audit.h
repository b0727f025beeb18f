// Data audit: no duplicate ids or questions, within a file or across files, and answers that the task can parse. Also
// counts depths, digits, answers and the order of options. `penelope data` writes the report as audit.json.
#pragma once

#include "base/json.h"
#include "task/task.h"

#include <filesystem>
#include <string>
#include <vector>

namespace penelope {

struct NamedExamples {
    std::string          name; // of the file
    std::vector<Example> examples;
};

struct AuditReport {
    bool        ok;
    std::string problem; // one line naming the first problems; empty if ok

    // {"status": "ok"|"error", "task", "n", "files": [{"file", "n", "questions_sha256", "counts": {facet: {value:
    // n}}}], "repeated_ids": {"n", "first": [..]}, "repeated_questions": {..}, "unreadable_answers": {..}}; with
    // "error" also "kind", "message" and "hint". questions_sha256 is over the hashes of the questions in file order.
    OrderedJson json;
};

// task null: recognized by the questions; questions of no known task are compared as plain text.
AuditReport audit(const std::vector<NamedExamples> & files, const Task * task = nullptr);

// Each path is a .jsonl or .json file or a folder, which stands for all such files in it but audit.json. Throws Error
// as read_examples does (ids that occur twice are for the report), and not_found for a folder without such files.
AuditReport audit_paths(const std::vector<std::filesystem::path> & paths, const Task * task = nullptr);

// Throws Error (format) with the report's problem unless it is ok.
void require_clean(const AuditReport & report);

} // namespace penelope
