// Browsers do not say which processors a page may use: src/graph/device.cpp then counts one.
#include <sched.h>

extern "C" int sched_getaffinity(pid_t /*process*/, size_t /*size*/, cpu_set_t * /*allowed*/) {
    return -1;
}
