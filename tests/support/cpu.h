// The CPU with one thread, which most tests of graphs run on.
#pragma once

#include "graph/device.h"

namespace penelope::test {

inline Backend & cpu() {
    static Backend instance(find_device("CPU"), 1);
    return instance;
}

} // namespace penelope::test
