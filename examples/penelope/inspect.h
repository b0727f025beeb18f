// The files of --trace (a JSON line per latent step) and --dump (intermediate tensors).
#pragma once

#include "base/atomic_file.h"
#include "base/json.h"
#include "convert/safetensors.h"
#include "infer/session.h"
#include "options.h"

#include <memory>
#include <string>
#include <vector>

namespace penelope {

class InspectionFiles {
  public:
    // Opens what --trace and --dump name; an existing file needs --force.
    explicit InspectionFiles(const Options & options);

    // Throws Error(usage) if a file is requested but the model has no sidecar.
    void check(const Engine & engine) const;

    // Writes the steps of a prompt to the trace, and the tensors of the first prompt to the dump.
    void add(Session & session, const std::vector<int32_t> & prompt, const OrderedJson & id, int n_steps);

    // Commits the files. Without this call nothing is left on disk.
    void finish();

  private:
    std::unique_ptr<AtomicFile>        trace_;
    std::unique_ptr<SafetensorsWriter> dump_;
    bool                               dumped_ = false;
};

} // namespace penelope
