// What a `penelope learn` run starts from: the checked data, the backbone and its facts, the open run folder.
#pragma once

#include "base/directory_lock.h"
#include "learn/learn.h"
#include "learn/learn_data.h"
#include "learn/learn_state.h"
#include "learn/run_files.h"

#include <memory>
#include <string>
#include <vector>

namespace penelope {

struct LearnSetup {
    LearnOptions              options; // without latent and control stages where there are no steps
    LearnData                 data;    // what fits the context
    LearnModelFacts           model;
    LearnDataFacts            facts;
    LearnState                state;
    DirectoryLock             lock;
    std::unique_ptr<RunFiles> files;
    std::vector<std::string>  notes; // what was left out and why
};

// Everything that can be wrong with data and base is found before the folder is made. Throws Error, naming what differs
// if the folder has another run.
LearnSetup open_learn_run(const LearnOptions & options);

} // namespace penelope
