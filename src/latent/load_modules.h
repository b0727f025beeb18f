// From a sidecar file to Penelope's modules in a WeightStore, and the time tables made from them once.
#pragma once

#include "gguf/reader.h"
#include "latent/sidecar.h"
#include "latent/time.h"
#include "model/weights.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace penelope {

LatentShape latent_shape(const SidecarConfig & config);

// Gives the node of a module tensor by name and shape; matrices may take a faster layout.
using ModuleSource = std::function<Node(const std::string & name, const std::vector<int64_t> & ne, bool is_matrix)>;

// All modules out of one source, which is asked once for each tensor.
PenelopeModules assemble_modules(const SidecarConfig & config, int64_t n_embd, const ModuleSource & get);

// The nodes have data after store.load(). Matrices keep their type; everything else is F32. Throws Error naming the tensor
// that is missing or misshapen.
PenelopeModules load_modules(std::shared_ptr<const GgufReader> file, const SidecarConfig & config, int n_embd,
                             WeightStore & store);

// Modules with random values, for measuring without a file.
PenelopeModules random_modules(const SidecarConfig & config, int n_embd, uint64_t seed, WeightStore & store);

// Runs the time network for t = 1 .. k_max and keeps its results in `store`, which is loaded by this call.
std::vector<TimeStep> make_time_tables(const PenelopeModules & modules, const LatentShape & shape,
                                       const DeviceInfo & device, WeightStore & store);

} // namespace penelope
