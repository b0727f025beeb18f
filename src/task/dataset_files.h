// `penelope data NAME` and `penelope data split`: write train.jsonl, valid.jsonl, test.jsonl and audit.json. (`penelope
// data audit` is in task/audit.h.)
#pragma once

#include "task/audit.h"
#include "task/dataset_split.h"
#include "task/task.h"

#include <filesystem>
#include <vector>

namespace penelope {

// Generates, audits, then writes each file atomically. A split of size 0 gets no file. audit.json also records the
// options under "options". Throws Error as generate and require_clean do, and Error(io) if a file exists and force is
// not set; then nothing is generated. With force, old files of splits that are now empty are removed.
AuditReport write_dataset(const Task & task, const DatasetOptions & options, const std::filesystem::path & out_dir,
                          bool force);

// Splits a file and writes the parts in the same way. Duplicate questions stay in one part and are counted in the
// report. task: name; empty: recognized by the questions.
AuditReport write_split(const std::filesystem::path & path, const SplitRatios & shares, uint64_t seed,
                        const std::string & task, const std::filesystem::path & out_dir, bool force);

// Question hashes of these files for DatasetOptions::excluded (--exclude). Throws Error as read_examples does.
std::unordered_set<std::string> question_hashes(const Task & task, const std::vector<std::filesystem::path> & paths);

} // namespace penelope
