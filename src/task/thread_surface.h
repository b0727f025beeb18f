// The text form of a thread: node names, edges, the question; and the parser of such text.
#pragma once

#include "task/thread.h"

#include <string>
#include <vector>

namespace penelope {

struct ThreadSurface {
    const char *             name;
    std::vector<std::string> names; // of nodes, all different
    std::string (*edge)(const std::string & from, const std::string & to);
    std::string (*ask)(const std::string & start);
    Thread (*read)(const std::vector<std::string> & words); // no edges: not this surface
};

const std::vector<ThreadSurface> & thread_surfaces();
const ThreadSurface *              find_thread_surface(const std::string & name); // null: unknown

bool                     is_thread_letter(char c);
std::vector<std::string> split_words(const std::string & text);

} // namespace penelope
