// Checkpoint of a run: one GGUF file, written atomically, with the weights and both AdamW moments of every parameter
// group, the run state as JSON, and SHA-256 checksums. Resuming from it is bit-identical: shuffling and dropout follow
// from the seed and the number of the update.
#pragma once

#include "train/curriculum.h"
#include "train/depth_sampler.h"
#include "train/optimizer.h"

#include <cstdint>
#include <functional>
#include <string>

namespace penelope {

struct BestScore {
    int64_t update = 0; // 0: none yet
    double  exact  = 0;
    double  loss   = 0;
};

struct RunState {
    int64_t       update          = 0; // updates done
    int64_t       validated       = 0; // last update that was validated
    int64_t       optimizer_steps = 0; // updates the optimizer has applied; set by loading
    StageProgress progress;
    BestScore     best;
    double        seconds = 0; // spent training so far
    std::string   settings;    // JSON; resuming requires equal settings

    std::vector<DepthRecord> depths; // with --adaptive; else empty
};

enum class CheckpointContents { weights, weights_and_moments };

// Replaces `path` atomically. Throws Error(io) when the disk is full; the old file then stays. before_replacing is
// called after the new file is complete and synced, before the rename.
void save_checkpoint(
    const std::string & path, const RunState & state, const Optimizer & optimizer, CheckpointContents parts,
    const std::function<void()> & before_replacing = [] {});

// Throws Error(format) naming the tensor or field that is missing, damaged or has the wrong size; the optimizer is then
// unchanged. accept() is called with the run state before tensors are read and throws if it belongs to another run.
RunState load_checkpoint(
    const std::string & path, Optimizer & optimizer, CheckpointContents parts,
    const std::function<void(const RunState & state)> & accept = [](const RunState &) {});

} // namespace penelope
