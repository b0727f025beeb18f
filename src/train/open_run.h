// Opens the folder of a training run and makes its trainer: lock, random backbone, config.toml and build.json.
#pragma once

#include "base/atomic_file.h"
#include "base/temporary_directory.h"
#include "train/run_folder.h"
#include "train/trainer.h"

#include <memory>

namespace penelope {

// Objects that exist as long as the training runs. The trainer goes first, the lock of the folder last.
struct OpenRun {
    std::unique_ptr<RunGuard>           hold;    // on rank 0
    std::unique_ptr<TemporaryDirectory> scratch; // on the other ranks
    TemporaryPath                       scratch_base;
    std::unique_ptr<Trainer>            trainer;
};

struct OpenRunOptions {
    bool resume = false;
    bool force  = false; // replaces the run that is in the folder
};

// Called on every rank; only rank 0 writes to the run folder, which may be on another machine. If the new run fails
// before its first checkpoint, the run that `force` replaced is restored. Throws Error as RunFolder and Trainer do.
OpenRun open_run(const TrainSettings & settings, const OpenRunOptions & options, const Backend & backend,
                 Collective & ranks);

} // namespace penelope
