// An intermediate state of a latent method, for traces and --dump.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

struct StateTensor {
    std::string          name;  // as in the reference: "H_x", "M_0", ..., "first_logits"
    std::vector<int64_t> shape; // row-major, vectors of length d last
    std::vector<float>   data;
};

// Null: there is no such state.
inline const StateTensor * find_state(const std::vector<StateTensor> & states, const std::string & name) {
    const auto found =
        std::find_if(states.begin(), states.end(), [&](const StateTensor & state) { return state.name == name; });
    return found == states.end() ? nullptr : &*found;
}

} // namespace penelope
