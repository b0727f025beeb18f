// How much each input of a weight matrix matters on a given text: the mean square of what the matrix is multiplied
// with. Quantizing with these weights puts the error where it is felt least.
#pragma once

#include "infer/engine.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace penelope {

// By the matrix's name in the file ("blk.0.attn_q.weight"): one number per input, [n_in].
using ImportanceMatrix = std::map<std::string, std::vector<float>>;

struct ImportanceOptions {
    int                              n_threads = 0;
    std::function<void(size_t done)> progress;  // tokens read so far; may be empty
    std::function<bool()>            cancelled; // polled between chunks; true ends with Error(cancelled)
};

// Runs the tokens through all layers in chunks that do not see each other. Throws Error(usage) when there are none.
ImportanceMatrix compute_imatrix(const Engine & engine, const std::vector<int32_t> & tokens,
                                 const ImportanceOptions & options);

} // namespace penelope
