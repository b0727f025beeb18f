// From a sidecar file to the modules of its method in a WeightStore, and Penelope's time tables made from them once.
#pragma once

#include "gguf/reader.h"
#include "latent/time.h"
#include "model/weights.h"
#include "sidecar/sidecar.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace penelope {

LatentShape latent_shape(const SidecarConfig & config);
// The layer whose result the modules of the method read.
int last_latent_layer(const SidecarConfig & config, int n_layer);

// The module tensors of a method by their names in its files.
using ModuleNodes = std::map<std::string, Node>;

// Penelope's modules among those of module_tensor_shapes().
PenelopeModules assemble_modules(const ModuleNodes & nodes);

// The modules of any method. The nodes have data after store.load(). Matrices keep their type; everything else is F32.
// Throws Error naming the tensor that is missing or misshapen.
ModuleNodes load_modules(std::shared_ptr<const GgufReader> file, const SidecarConfig & config, int n_embd,
                         WeightStore & store);

// The same with random values, for measuring without a file.
ModuleNodes random_modules(const SidecarConfig & config, int n_embd, uint64_t seed, WeightStore & store);

// Runs the time network for t = 1 .. k_max and keeps its results in `store`, which is loaded by this call.
std::vector<TimeStep> make_time_tables(const PenelopeModules & modules, const LatentShape & shape,
                                       const DeviceInfo & device, WeightStore & store);

} // namespace penelope
