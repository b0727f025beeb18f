// Memory of this process and of the machine, in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace penelope {

// Largest resident size this process has had.
uint64_t peak_memory();

// What this process can still allocate without swapping or being killed: the smallest of what the system calls
// available, what every enclosing control group (version 1 or 2) leaves, and the address space limit. Nothing when none
// is known. `root` stands before /proc and /sys, for tests; the address space limit is only looked at when it is empty.
std::optional<uint64_t> available_memory(const std::string & root = "");

// Throws Error(memory) naming `what`, the bytes needed and those available, when they are more. Does nothing when the
// available memory is not known.
void require_memory(uint64_t bytes, const std::string & what, const std::string & hint = "");

// Fixes glibc's mmap threshold at 128 KiB, so that larger blocks return to the system when freed. glibc would raise the
// threshold by itself, and graphs of changing sizes would then fragment the heap.
void set_mmap_threshold();

} // namespace penelope
