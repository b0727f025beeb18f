#include "base/nearest_name.h"

#include <algorithm>

namespace penelope {

namespace {

// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i) {
        for (size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                cost[i][j] = i + j;
                continue;
            }
            cost[i][j] =
                std::min({ cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]) });
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
            }
        }
    }
    return cost[a.size()][b.size()];
}

} // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string> & candidates) {
    const size_t n_letters = name.size() - std::min(name.size(), name.find_first_not_of('-'));
    std::string  best;
    size_t       best_distance = n_letters < 2 ? 0 : std::max<size_t>(2, n_letters / 2) + 1;
    for (const std::string & candidate : candidates) {
        const size_t distance = edit_distance(name, candidate);
        if (distance < best_distance) {
            best          = candidate;
            best_distance = distance;
        }
    }
    return best;
}

} // namespace penelope
