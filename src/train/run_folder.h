// The folder of a run: config.toml (all settings), metrics.jsonl, build.json, model.gguf, and in checkpoint/ last.gguf,
// previous.gguf and best.gguf. Also base.gguf if the run starts from a random backbone, and backbone.gguf if it trains
// all weights of a latent method.
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
    // folders: directories with files of the run. newest: its newest checkpoint.
    RunBackup(std::vector<std::string> folders, std::string newest)
        : folders_(std::move(folders)), newest_(std::move(newest)) {}

    bool has_backup() const;
    // Throws Error(io).
    void move_to_backup(const std::vector<std::string> & files) const;
    // Best effort; files that could not be moved back are tried again next time.
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

    // Throws Error if the folder has a run that is neither resumed nor replaced, or no run to resume.
    void check(bool resume, bool replace) const;
    // Creates and locks the folder, backs up a run that is replaced, and removes temporary files of killed runs. Throws
    // Error if another process has the lock, and as check() does.
    [[nodiscard]] std::unique_ptr<RunGuard> create(bool resume, bool replace) const;
    // Restores the backup if the run that was to replace it was killed before its first checkpoint.
    void recover() const;
    // Called after the first checkpoint of the new run.
    void discard_backup() const noexcept { backup().remove(); }

    // Last component of the absolute path.
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

    // last(), previous() if it exists, and the numbered checkpoints, newest first.
    std::vector<std::string> checkpoints() const;

    // Called before last() is replaced: links it as previous().
    void save_previous() const;
    // Called after last() was written: links it as at(update) and keeps the newest n of these.
    void save_numbered(int64_t update, int64_t n) const;
    // Replaces a damaged last() by this checkpoint.
    void restore_last(const std::string & checkpoint) const;

    // Writes config() if its contents differ.
    void update_config(const std::string & toml) const;

    void append_metrics(const OrderedJson & line) const;
    // fsync of metrics().
    void sync_metrics() const;
    // Drops lines after this update, and validation lines after update `validated`, when a run resumes.
    void cut_metrics(int64_t update, int64_t validated) const;

  private:
    friend class RunGuard;

    RunBackup backup() const;
    void      restore_or_discard_backup() const noexcept;
    void      remove_unfinished() const;
    void      resolve_links() const;
    bool      has_run() const;
    bool      has_checkpoint() const;
    std::vector<std::pair<int64_t, std::string>>
                numbered() const; // update and path of numbered checkpoints, newest first
    std::string file(const std::string & name) const;

    std::string path_;
};

// Holds the lock of the folder. If a new run fails before its first checkpoint, the destructor removes the files it
// created and restores the backup of the replaced run.
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
