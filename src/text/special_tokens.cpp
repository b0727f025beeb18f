#include "text/special_tokens.h"

#include <map>
#include <queue>

namespace penelope {

void SpecialTokens::add(std::string_view text, int32_t id) {
    uint64_t node = 0;
    for (const char c : text) {
        const auto [edge, is_new] =
            edges_.emplace(node << 8 | static_cast<uint8_t>(c), static_cast<uint32_t>(token_of_.size()));
        if (is_new) {
            token_of_.push_back(-1);
        }
        node = edge->second;
    }
    token_of_[node]                        = id;
    starts_[static_cast<uint8_t>(text[0])] = true;
}

SpecialTokens::Match SpecialTokens::longest_at(std::string_view text, size_t begin, size_t most) const {
    Match    longest{ begin, 0, -1 };
    uint64_t node = 0;
    for (size_t i = begin; i < begin + most; i++) {
        const auto edge = edges_.find(node << 8 | static_cast<uint8_t>(text[i]));
        if (edge == edges_.end()) {
            break;
        }
        node = edge->second;
        if (token_of_[node] >= 0) {
            longest = { begin, i + 1 - begin, token_of_[node] };
        }
    }
    return longest;
}

std::vector<SpecialTokens::Match> SpecialTokens::find(std::string_view text) const {
    const auto comes_later = [](const Match & a, const Match & b) {
        return a.size != b.size ? a.size < b.size : a.begin > b.begin;
    };
    std::priority_queue<Match, std::vector<Match>, decltype(comes_later)> open(comes_later); // one of each place
    const auto                                                            try_at = [&](size_t begin, size_t most) {
        if (const Match match = longest_at(text, begin, most); match.size > 0) {
            open.push(match);
        }
    };
    for (size_t begin = 0; begin < text.size(); begin++) {
        if (starts_[static_cast<uint8_t>(text[begin])]) {
            try_at(begin, text.size() - begin);
        }
    }
    std::map<size_t, Match> taken; // by their end
    while (!open.empty()) {
        const Match match = open.top();
        open.pop();
        const auto after = taken.upper_bound(match.begin);
        if (after == taken.end() || after->second.begin >= match.begin + match.size) {
            taken.emplace(match.begin + match.size, match);
        } else if (after->second.begin > match.begin) {
            try_at(match.begin, after->second.begin - match.begin); // a shorter one may fit before it
        }
    }
    std::vector<Match> matches;
    for (const auto & [end, match] : taken) {
        matches.push_back(match);
    }
    return matches;
}

} // namespace penelope
