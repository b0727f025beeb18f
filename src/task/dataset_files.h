// What `penelope data` does: makes a task's dataset as files. (`penelope data audit` is audit_paths of task/audit.h.)
// Input: a task and its options; output: train.jsonl, valid.jsonl, test.jsonl and audit.json in a folder.
#pragma once

#include "task/audit.h"
#include "task/dataset_split.h"
#include "task/task.h"

#include <filesystem>
#include <vector>

namespace penelope {

// Generates, audits and then writes, each file under a temporary name and renamed. A split of size 0 gets no file. The
// audit.json is the audit's report with the options that made the data under "options".
// Throws Error as generate and require_clean do, and usage when one of the files exists already and force is not given;
// nothing is generated or written in that case. With force an old file of a split that is now empty is removed.
AuditReport write_dataset(const Task & task, const DatasetOptions & options, const std::filesystem::path & out_dir,
                          bool force);

// Divides a file into parts, which are written in the same way. Questions that occur several times stay in one part and are
// counted in the report, not refused. task: its name; empty: by the questions.
AuditReport write_split(const std::filesystem::path & path, const SplitRatios & shares, uint64_t seed,
                        const std::string & task, const std::filesystem::path & out_dir, bool force);

// The hashes of the questions in these files, for DatasetOptions::excluded: data made with them shares no question with the
// files. Throws Error as read_examples does.
std::unordered_set<std::string> question_hashes(const Task & task, const std::vector<std::filesystem::path> & paths);

} // namespace penelope
