#include "text/special_tokens.h"

#include <algorithm>
#include <map>

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

std::vector<SpecialTokens::Match> SpecialTokens::find(std::string_view text) const {
    std::vector<Match> candidates;
    for (size_t begin = 0; begin < text.size(); begin++) {
        if (!starts_[static_cast<uint8_t>(text[begin])]) {
            continue;
        }
        uint64_t node = 0;
        for (size_t i = begin; i < text.size(); i++) {
            const auto edge = edges_.find(node << 8 | static_cast<uint8_t>(text[i]));
            if (edge == edges_.end()) {
                break;
            }
            node = edge->second;
            if (token_of_[node] >= 0) {
                candidates.push_back({ begin, i + 1 - begin, token_of_[node] });
            }
        }
    }
    if (candidates.size() < 2) {
        return candidates;
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Match & a, const Match & b) { return a.size > b.size; });
    std::map<size_t, Match> taken; // by their end
    for (const Match & match : candidates) {
        const auto after = taken.upper_bound(match.begin);
        if (after == taken.end() || after->second.begin >= match.begin + match.size) {
            taken.emplace(match.begin + match.size, match);
        }
    }
    std::vector<Match> matches;
    for (const auto & [end, match] : taken) {
        matches.push_back(match);
    }
    return matches;
}

} // namespace penelope
