// The files of --trace and --dump: what happens inside between the prompt and the answer.
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

    // Throws Error(usage) when there will be nothing to write: the model has no latent steps.
    void check(const Engine & engine) const;

    // Adds a prompt: every one to the trace, the first one to the dump. Does nothing without the two options.
    void add(Session & session, const std::vector<int32_t> & prompt, const OrderedJson & id, int n_steps);

    // Puts the files in their places. Without it nothing is left behind.
    void finish();

  private:
    std::unique_ptr<AtomicFile>        trace_;
    std::unique_ptr<SafetensorsWriter> dump_;
    bool                               dumped_ = false;
};

} // namespace penelope
