// Everything a run needs to go on exactly as if it had not stopped, in one GGUF file that appears whole or not at all: flat
// weights and both moments of every group, a JSON object with the counts, and a checksum of each. What else a run draws on
// (order of the examples, dropout) follows from its seed and the number of the update.
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
    std::string   settings;    // JSON; a run is only continued under the same

    std::vector<DepthRecord> depths; // of a run that steers itself; else empty
};

enum class CheckpointContents { weights, weights_and_moments };

// Replaces `path`. Throws Error(io) when the disk is full; the file that was there stays. before_replacing is called
// when the new one is on the disk, whole.
void save_checkpoint(
    const std::string & path, const RunState & state, const Optimizer & optimizer, CheckpointContents parts,
    const std::function<void()> & before_replacing = [] {});

// Throws Error(format) naming the tensor or field that is missing, damaged or does not fit the optimizer, which then is as it
// was. accept sees counts and settings before the rest is looked at, and throws when they are not of this run.
RunState load_checkpoint(
    const std::string & path, Optimizer & optimizer, CheckpointContents parts,
    const std::function<void(const RunState & state)> & accept = [](const RunState &) {});

} // namespace penelope
