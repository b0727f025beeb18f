#include "mpi/join_ranks.h"

#include "base/error.h"

namespace penelope {

std::unique_ptr<Collective> join_ranks() {
    if (started_by_launcher()) {
        throw Error(ErrorKind::unsupported, "several ranks: this program was built without MPI",
                    "build it where MPI is installed (Debian: libopenmpi-dev openmpi-bin), or start it without mpirun");
    }
    return single_process();
}

std::string mpi_version_text() {
    return "none";
}

} // namespace penelope
