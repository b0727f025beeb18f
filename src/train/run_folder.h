// The folder of a run: config.toml as resolved, metrics.jsonl, build.json, checkpoint/last.gguf, the one before it as
// checkpoint/previous.gguf, and checkpoint/best.gguf; model.gguf, base.gguf when the run starts from a backbone of its own, backbone.gguf when it trains all weights under a
// sidecar.
#pragma once

#include "base/directory_lock.h"
#include "base/json.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace penelope {

// Backup of the run that a new run in the same folder replaces. It is removed after the new run's first checkpoint and
// restored if the new run fails before. Files are only renamed, into the hidden directory .replaced beside them. The
// newest checkpoint is moved first and restored last: while it is missing, the backup is the run of the folder.
class RunBackup {
  public:
    // folders: where its files lie. newest: its newest checkpoint.
    RunBackup(std::vector<std::string> folders, std::string newest)
        : folders_(std::move(folders)), newest_(std::move(newest)) {}

    bool has_backup() const;
    // Throws Error(io).
    void move_to_backup(const std::vector<std::string> & files) const;
    // As far as the file system lets us; what stays aside is tried again the next time.
    void restore() const noexcept;
    void remove() const noexcept;

  private:
    std::vector<std::string> folders_;
    std::string              newest_;
};

class RunGuard;

class RunFolder {
  public:
    explicit RunFolder(std::string path) : path_(std::move(path)) {}

    // Throws Error for a folder that holds a run already, unless it is to be resumed or replaced, and for one without a run to
    // resume.
    void check(bool resume, bool replace) const;
    // Makes the folder, without the files of a run that is not resumed, and without what killed runs left half written.
    // Throws Error when somebody else is at work there, and what check() does.
    [[nodiscard]] std::unique_ptr<RunGuard> create(bool resume, bool replace) const;
    // Puts back the run that a new one was to replace when it was killed before its first checkpoint.
    void recover() const;
    // The new run has its first checkpoint.
    void discard_backup() const noexcept { backup().remove(); }

    // The last part of its path, however that is spelled.
    std::string name() const;

    std::string config() const { return file("config.toml"); }
    std::string metrics() const { return file("metrics.jsonl"); }
    std::string build() const { return file("build.json"); }
    std::string model() const { return file("model.gguf"); }
    std::string base() const { return file("base.gguf"); }
    std::string backbone() const { return file("backbone.gguf"); }
    std::string last() const { return file("checkpoint/last.gguf"); }
    std::string previous() const { return file("checkpoint/previous.gguf"); }
    std::string best() const { return file("checkpoint/best.gguf"); }
    std::string at(int64_t update) const { return file("checkpoint/update-" + std::to_string(update) + ".gguf"); }
    bool        has(const std::string & file_path) const;

    // last(), previous() and those kept under their numbers, as far as they are there, the newest first; last() always.
    std::vector<std::string> checkpoints() const;

    // Before last() is replaced: what it holds becomes previous().
    void save_previous() const;
    // After it was written: it stays as at(update), and of these the newest n.
    void save_numbered(int64_t update, int64_t n) const;
    // last() is damaged: this checkpoint takes its place.
    void restore_last(const std::string & checkpoint) const;

    // Writes config() anew unless it says this already.
    void update_config(const std::string & toml) const;

    void append_metrics(const OrderedJson & line) const;
    // What was appended is on the disk.
    void sync_metrics() const;
    // Drops what a run that was cut off wrote after this update, and scores of later validations than that of update
    // `validated`.
    void cut_metrics(int64_t update, int64_t validated) const;

  private:
    friend class RunGuard;

    RunBackup                                    backup() const;
    void                                         restore_or_discard_backup() const noexcept;
    void                                         remove_unfinished() const;
    void                                         resolve_links() const;
    bool                                         has_run() const;
    bool                                         has_checkpoint() const;
    std::vector<std::pair<int64_t, std::string>> numbered() const; // at(update) by update, the newest first
    std::string                                  file(const std::string & name) const;

    std::string path_;
};

// While it lives nobody else writes to the folder. When a new run ends before its first checkpoint, the files it began
// with go and the run it was to replace is back.
class RunGuard {
  public:
    RunGuard(RunFolder folder, DirectoryLock lock, bool is_new);
    ~RunGuard();
    RunGuard(const RunGuard &)             = delete;
    RunGuard & operator=(const RunGuard &) = delete;

    void remove_on_failure(const std::string & file) { files_to_remove_.push_back(file); } // before it is written

  private:
    RunFolder                folder_;
    DirectoryLock            lock_;
    bool                     is_new_;
    std::vector<std::string> files_to_remove_;
};

} // namespace penelope
