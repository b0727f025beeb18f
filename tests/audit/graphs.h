// Runs of the program that together build every graph it has, by the kind of graph: a row of the audit's table each.
#pragma once

#include "graph/device.h"

#include <functional>
#include <string>
#include <vector>

namespace penelope::audit {

// Runs `work`, whose graphs are of this kind.
using AuditFunction = std::function<void(const std::string & kind, const std::function<void()> & work)>;

// What a model is made of and how deep it thinks.
struct AuditCase {
    std::string            shape, type;
    std::string            device, other; // two of the same kind, for layers spread over both
    std::vector<int>       steps;         // each K to ask for
    std::vector<ggml_type> caches;        // types
};

// Every way to answer with a model of this shape, weights and modules of this type.
void audit_inference(const AuditCase & asked, const AuditFunction & ask);

// Every way to train it.
void audit_training(const AuditCase & asked, const AuditFunction & ask);

} // namespace penelope::audit
