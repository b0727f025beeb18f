// Ends a growing text before the first of several strings. Text that may turn out to be the beginning of one waits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penelope {

// Length of the longest end of `text` with which `marker` could begin, less than the whole of `marker`.
size_t marker_overlap(std::string_view text, std::string_view marker);

class StopStrings {
  public:
    // Empty strings are left out.
    explicit StopStrings(std::vector<std::string> stops);

    // The text that is certain by now. After a hit nothing more comes.
    std::string feed(std::string_view text);
    std::string flush(); // what still waits, when the text ends by itself
    bool        hit() const { return hit_; }
    // The one that was hit, "" while none was.
    const std::string & found() const { return found_; }

  private:
    std::vector<std::string> stops_;
    std::string              waiting_, found_;
    bool                     hit_ = false;
};

} // namespace penelope
