// Table of methods by name, with their factories. File formats of methods are in sidecar/method_format.h, their
// training in train/method_training.h; no other code knows methods by name.
#pragma once

#include "method/method.h"
#include "sidecar/load_modules.h"

namespace penelope {

class Tokenizer;

// What a method is made of. Everything outlives the method.
struct MethodParts {
    const SidecarConfig & config; // as if empty for methods without modules
    const ModuleNodes &   nodes;  // with their data
    const DeviceInfo &    device;
    const Tokenizer &     tokenizer;
    WeightStore &         tables; // takes what is computed once from the modules
};

struct MethodEntry {
    const char * name;
    bool         is_visible;    // thinks in tokens that it writes: no latent steps, a trace before the answer
    bool         needs_sidecar; // is of no use on a backbone alone
    std::unique_ptr<Method> (*make)(const MethodParts & parts);
};

const std::vector<MethodEntry> & method_table();
const MethodEntry *              find_method(const std::string & name); // null: no such method
const MethodEntry &              get_method(const std::string & name);  // throws Error(usage) naming the known ones

// For those who have no more than a name, which may be that of a method unknown here.
bool is_visible_method(const std::string & name);

} // namespace penelope
