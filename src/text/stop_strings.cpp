#include "text/stop_strings.h"

#include <algorithm>

namespace penelope {

size_t marker_overlap(std::string_view text, std::string_view marker) {
    for (size_t n = std::min(text.size(), marker.size() - 1); n > 0; n--) {
        if (text.substr(text.size() - n) == marker.substr(0, n)) {
            return n;
        }
    }
    return 0;
}

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
    stops_.erase(std::remove(stops_.begin(), stops_.end(), ""), stops_.end());
}

std::string StopStrings::feed(std::string_view text) {
    if (hit_) {
        return "";
    }
    waiting_ += text;
    size_t first = std::string::npos, held = 0;
    for (const std::string & stop : stops_) {
        const size_t place = waiting_.find(stop);
        if (place < first) {
            first  = place;
            found_ = stop;
        }
        held = std::max(held, marker_overlap(waiting_, stop));
    }
    hit_                      = first != std::string::npos;
    const size_t      n       = hit_ ? first : waiting_.size() - held;
    const std::string certain = waiting_.substr(0, n);
    waiting_                  = hit_ ? "" : waiting_.substr(n);
    return certain;
}

std::string StopStrings::flush() {
    std::string rest;
    rest.swap(waiting_);
    return rest;
}

} // namespace penelope
