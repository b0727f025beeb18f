// How a process finds the others it trains with. One of the two files beside this one is compiled: with MPI or without.
#pragma once

#include "train/collective.h"

#include <cstdlib>
#include <string>

namespace penelope {

// The ranks that mpirun started this process with; one by itself when it was started otherwise. Its destructor waits
// for all to leave; when this rank alone ends by an exception, it ends the others as well. Throws Error(unsupported)
// when there are several and the program was built without MPI.
std::unique_ptr<Collective> join_ranks();

// "Open MPI 4.1.4", or "none".
std::string mpi_version_text();

// Whether a launcher of ranks started this process: each leaves its mark in the environment. A process by itself does
// without MPI, which takes long to start.
inline bool started_by_launcher() {
    for (const char * mark : { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK" }) {
        if (std::getenv(mark) != nullptr) {
            return true;
        }
    }
    return false;
}

} // namespace penelope
