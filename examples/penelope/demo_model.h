// The bundled demo model, used by penelope serve without -m.
#pragma once

#include <string>

namespace penelope {

struct DemoModel {
    std::string base, sidecar;
};

// A sidecar and its backbone from the folder `models` of the source tree the program was built in, or of the directory
// it was installed to. Throws Error(not_found).
DemoModel find_demo_model();

} // namespace penelope
