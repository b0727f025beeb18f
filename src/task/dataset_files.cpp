#include "task/dataset_files.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/sha256.h"
#include "task/choose_task.h"

#include <memory>
#include <system_error>

namespace penelope {

namespace {

namespace fs = std::filesystem;

OrderedJson options_json(const DatasetOptions & options) {
    const auto  range = [](const DepthRange & depth) { return OrderedJson::array({ depth.first, depth.last }); };
    OrderedJson all   = { { "seed", options.seed },           { "train", options.n_train },
                          { "valid", options.n_valid },       { "test", options.n_test },
                          { "depth", range(options.depth) },  { "test_depth", range(options.test_depth) },
                          { "operators", options.operators }, { "branch_p", options.branch_p },
                          { "max_steps", options.max_steps }, { "chains", options.n_chains },
                          { "surface", options.surface },     { "excluded_questions", options.excluded.size() } };
    if (options.min_chains > 0) {
        all["min_chains"] = options.min_chains;
    }
    return all;
}

void refuse_existing(const fs::path & out_dir) {
    for (const char * name : { "train.jsonl", "valid.jsonl", "test.jsonl", "audit.json" }) {
        std::error_code ignored; // a folder that cannot be looked into fails when it is written to
        if (fs::exists(out_dir / name, ignored)) {
            throw Error(ErrorKind::io, (out_dir / name).string() + ": already exists", "--force replaces it");
        }
    }
}

void make_folder(const fs::path & folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error || !fs::is_directory(folder)) {
        throw Error(ErrorKind::io,
                    folder.string() + ": cannot create directory" + (error ? ": " + error.message() : ""),
                    "choose another --out");
    }
}

} // namespace

namespace {

enum class Duplicates { refused, counted };

// The parts that have examples, audited, with the options that made them in the report.
AuditReport write_splits(Dataset dataset, const Task & task, const OrderedJson & options, Duplicates duplicates,
                         const fs::path & out_dir, bool force) {
    std::vector<NamedExamples> files = { { "train.jsonl", std::move(dataset.train) },
                                         { "valid.jsonl", std::move(dataset.valid) },
                                         { "test.jsonl", std::move(dataset.test) } };
    std::vector<fs::path>      obsolete;
    for (size_t i = files.size(); i-- > 0;) {
        if (files[i].examples.empty()) {
            obsolete.push_back(out_dir / files[i].name);
            files.erase(files.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    AuditReport report = audit(files, &task);
    if (duplicates == Duplicates::refused) {
        require_clean(report);
    }
    report.json["status"]  = "ok";
    report.json["options"] = options;

    // Everything is on the disk under temporary names before the first file appears under its own.
    make_folder(out_dir);
    std::vector<std::unique_ptr<AtomicFile>> written;
    const auto                               write = [&](const std::string & name, const std::string & text) {
        written.push_back(std::make_unique<AtomicFile>((out_dir / name).string(), force));
        written.back()->write(text);
    };
    for (const NamedExamples & file : files) {
        write(file.name, examples_to_jsonl(file.examples));
    }
    write("audit.json", dump_json(report.json, 2) + "\n");
    for (const std::unique_ptr<AtomicFile> & file : written) {
        file->sync();
    }
    for (const std::unique_ptr<AtomicFile> & file : written) {
        file->commit();
    }
    for (const fs::path & path : obsolete) {
        std::error_code error;
        fs::remove(path, error);
        if (error) {
            throw Error(ErrorKind::io, path.string() + ": cannot remove: " + error.message());
        }
    }
    return report;
}

} // namespace

AuditReport write_dataset(const Task & task, const DatasetOptions & options, const fs::path & out_dir, bool force) {
    if (!force) {
        refuse_existing(out_dir);
    }
    return write_splits(task.generate(options), task, options_json(options), Duplicates::refused, out_dir, force);
}

AuditReport write_split(const fs::path & path, const SplitRatios & shares, uint64_t seed, const std::string & task,
                        const fs::path & out_dir, bool force) {
    if (!force) {
        refuse_existing(out_dir);
    }
    const std::vector<Example> examples = read_examples(path);
    return write_splits(
        split_dataset(examples, shares, seed), *choose_task(task, "", examples).task,
        { { "file", path.string() }, { "split", { shares.train, shares.valid, shares.test } }, { "seed", seed } },
        Duplicates::counted, out_dir, force);
}

std::unordered_set<std::string> question_hashes(const Task & task, const std::vector<fs::path> & paths) {
    std::unordered_set<std::string> hashes;
    for (const fs::path & path : paths) {
        for (const Example & example : read_examples(path, IdCheck::none)) {
            hashes.insert(sha256_hex(task.normalize(example.question)));
        }
    }
    return hashes;
}

} // namespace penelope
