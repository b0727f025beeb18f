// The model that comes with the program, for those who name none.
#pragma once

#include <string>

namespace penelope {

struct DemoModel {
    std::string base, sidecar;
};

// A sidecar and the backbone it was made for, from the folder `models` of the source tree the program was built in, or of
// the place it was installed to. Throws Error(not_found).
DemoModel find_demo_model();

} // namespace penelope
