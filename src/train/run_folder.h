// The folder of a run: config.toml as resolved, metrics.jsonl, build.json, checkpoint/last.gguf, the one before it as
// checkpoint/previous.gguf, and checkpoint/best.gguf; model.gguf, base.gguf when the run starts from a backbone of its own, backbone.gguf when it trains all weights under a
// sidecar.
#pragma once

#include "base/folder_lock.h"
#include "base/json.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penelope {

class RunFolder {
  public:
    explicit RunFolder(std::string path) : path_(std::move(path)) {}

    // Throws Error for a folder that holds a run already, unless it is to be resumed or replaced, and for one without a run to
    // resume.
    void check(bool resume, bool replace) const;
    // Makes the folder, without the files of a run that is not resumed, and without what killed runs left half written. Nobody
    // else writes there while the lock is held; throws Error when somebody does, and what check() does.
    [[nodiscard]] FolderLock create(bool resume, bool replace) const;

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

    // Before last() is written anew: what it holds becomes previous().
    void keep_previous() const;
    // After it was written: it stays as at(update), and of these the newest n.
    void keep_last(int64_t update, int64_t n) const;
    // last() is damaged: this checkpoint takes its place.
    void return_to(const std::string & checkpoint) const;

    void append_metrics(const OrderedJson & line) const;
    // Drops what was written after this update by a run that was cut off.
    void cut_metrics(int64_t update) const;

  private:
    bool                                         holds_run() const;
    bool                                         has_checkpoint() const;
    std::vector<std::pair<int64_t, std::string>> kept() const; // at(update) by update, the newest first
    std::string                                  file(const std::string & name) const;

    std::string path_;
};

} // namespace penelope
