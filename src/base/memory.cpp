#include "base/memory.h"

#include "base/error.h"
#include "base/format.h"

#include <sys/resource.h>
#include <unistd.h>
#ifdef __GLIBC__
#    include <malloc.h>
#endif

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

namespace penelope {

namespace {

constexpr uint64_t unlimited = std::numeric_limits<uint64_t>::max();

// The first number of a file; nothing when it is missing or says "max".
std::optional<uint64_t> read_number(const std::string & path) {
    std::ifstream file(path);
    uint64_t      value = 0;
    return file >> value ? std::optional<uint64_t>(value) : std::nullopt;
}

// The number after `field` in a file of "field number" lines.
std::optional<uint64_t> read_field(const std::string & path, const std::string & field) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string        name;
        uint64_t           value = 0;
        if (words >> name >> value && name == field) {
            return value;
        }
    }
    return std::nullopt;
}

struct CgroupFiles {
    const char * limit;
    const char * usage;
    const char * inactive_file; // page cache the kernel gives up first, counted in usage
};
constexpr CgroupFiles files_v2 = { "memory.max", "memory.current", "inactive_file" };
constexpr CgroupFiles files_v1 = { "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file" };

// Smallest room in the group at `path` (as in /proc/self/cgroup) and in all groups around it.
uint64_t cgroup_available(const std::string & mount, std::string path, const CgroupFiles & files) {
    uint64_t available = unlimited;
    for (;;) {
        const std::string directory = mount + (path == "/" ? "" : path) + "/";
        const auto        limit     = read_number(directory + files.limit);
        const auto        usage     = read_number(directory + files.usage);
        if (limit && usage) {
            const uint64_t cache      = read_field(directory + "memory.stat", files.inactive_file).value_or(0);
            const uint64_t used_bytes = *usage - std::min(*usage, cache);
            available                 = std::min(available, *limit - std::min(*limit, used_bytes));
        }
        if (path.empty() || path == "/") {
            return available;
        }
        path.erase(path.rfind('/'));
    }
}

uint64_t all_cgroups_available(const std::string & root) {
    uint64_t      available = unlimited;
    std::ifstream file(root + "/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
        // "4:memory:/path" in version 1, "0::/path" in version 2
        const size_t first  = line.find(':');
        const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) {
            continue;
        }
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const std::string path        = line.substr(second + 1);
        // Inside a container the mount often shows the own group as its root, under which the path does not exist.
        if (controllers == ",,") {
            available = std::min(available, cgroup_available(root + "/sys/fs/cgroup", path, files_v2));
        } else if (controllers.find(",memory,") != std::string::npos) {
            available = std::min(available, cgroup_available(root + "/sys/fs/cgroup/memory", path, files_v1));
        }
    }
    return available;
}

uint64_t address_space_available() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return unlimited;
    }
    const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    const uint64_t used = read_number("/proc/self/statm").value_or(0) * page;
    return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, used);
}

uint64_t system_available(const std::string & root) {
    if (const auto kib = read_field(root + "/proc/meminfo", "MemAvailable:")) {
        return *kib * 1024;
    }
#ifdef _SC_PHYS_PAGES
    if (root.empty() && ::sysconf(_SC_PHYS_PAGES) > 0) {
        return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    }
#endif
    return unlimited;
}

} // namespace

uint64_t peak_memory() {
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) != 0) {
        return 0;
    }
#ifdef __APPLE__
    return static_cast<uint64_t>(usage.ru_maxrss);
#else
    return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
#endif
}

std::optional<uint64_t> available_memory(const std::string & root) {
    uint64_t available = std::min(system_available(root), all_cgroups_available(root));
    if (root.empty()) {
        available = std::min(available, address_space_available());
    }
    return available == unlimited ? std::nullopt : std::optional<uint64_t>(available);
}

void require_memory(uint64_t bytes, const std::string & what, const std::string & hint) {
    const std::optional<uint64_t> available = available_memory();
    if (available && bytes > *available) {
        throw Error(ErrorKind::memory,
                    what + ": needs " + format_bytes(bytes) + " of memory but only " + format_bytes(*available) +
                        " are available",
                    hint);
    }
}

void set_mmap_threshold() {
#ifdef __GLIBC__
    ::mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#endif
}

} // namespace penelope
