#include "text/bpe_merges.h"

#include <algorithm>
#include <array>
#include <functional>

namespace penelope {

namespace {

constexpr uint64_t empty_key = UINT64_MAX;

// Up to here a scan for the lowest rank is faster than a queue.
constexpr size_t max_scanned = 48;

uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

} // namespace

BpeMerges::BpeMerges(size_t n_rules) {
    int bits = 4;
    while ((size_t(1) << bits) < 2 * n_rules) {
        bits++;
    }
    shift_ = 64 - bits;
    slots_.assign(size_t(1) << bits, Slot{ empty_key, no_rank });
    results_.reserve(n_rules);
}

void BpeMerges::add(int32_t left, int32_t right, int32_t result) {
    const uint64_t key = key_of(left, right);
    size_t         i   = slot_of(key);
    while (slots_[i].key != empty_key && slots_[i].key != key) {
        i = (i + 1) & (slots_.size() - 1);
    }
    if (slots_[i].key == empty_key) {
        slots_[i] = { key, static_cast<uint32_t>(results_.size()) };
    }
    results_.push_back(result);
}

uint32_t BpeMerges::rank_of(int32_t left, int32_t right) const {
    if (left < 0 || right < 0) {
        return no_rank;
    }
    const uint64_t key = key_of(left, right);
    for (size_t i = slot_of(key);; i = (i + 1) & (slots_.size() - 1)) {
        if (slots_[i].key == key) {
            return slots_[i].rank;
        }
        if (slots_[i].key == empty_key) {
            return no_rank;
        }
    }
}

void BpeMerges::apply(std::vector<int32_t> & symbols) const {
    if (symbols.size() <= max_scanned) {
        apply_by_scanning(symbols);
    } else {
        apply_by_queue(symbols);
    }
}

void BpeMerges::apply_by_scanning(std::vector<int32_t> & symbols) const {
    size_t n = symbols.size();
    if (n < 2) {
        return;
    }
    std::array<uint32_t, max_scanned> ranks; // of the pair (i, i + 1)
    for (size_t i = 0; i + 1 < n; i++) {
        ranks[i] = rank_of(symbols[i], symbols[i + 1]);
    }
    while (n > 1) {
        const size_t   best = std::min_element(ranks.begin(), ranks.begin() + (n - 1)) - ranks.begin();
        const uint32_t rank = ranks[best];
        if (rank == no_rank) {
            break;
        }
        symbols[best] = results_[rank];
        std::copy(symbols.begin() + best + 2, symbols.begin() + n, symbols.begin() + best + 1);
        n--;
        if (best + 1 < n) {
            std::copy(ranks.begin() + best + 2, ranks.begin() + n, ranks.begin() + best + 1);
            ranks[best] = rank_of(symbols[best], symbols[best + 1]);
        }
        if (best > 0) {
            ranks[best - 1] = rank_of(symbols[best - 1], symbols[best]);
        }
    }
    symbols.resize(n);
}

void BpeMerges::apply_by_queue(std::vector<int32_t> & symbols) const {
    // A doubly linked list over the symbols. An entry of the queue is rank << 32 | position of the left symbol; it is
    // out of date, and skipped, when the pair at that position has another rank by now.
    const uint32_t        n    = static_cast<uint32_t>(symbols.size());
    const uint32_t        none = UINT32_MAX;
    std::vector<uint32_t> prev(n), next(n), ranks(n, no_rank);
    std::vector<uint64_t> queue;
    queue.reserve(n);
    for (uint32_t i = 0; i < n; i++) {
        prev[i] = i == 0 ? none : i - 1;
        next[i] = i + 1 == n ? none : i + 1;
        if (i + 1 < n) {
            ranks[i] = rank_of(symbols[i], symbols[i + 1]);
            if (ranks[i] != no_rank) {
                queue.push_back(static_cast<uint64_t>(ranks[i]) << 32 | i);
            }
        }
    }
    const auto lowest_first = std::greater<uint64_t>();
    std::make_heap(queue.begin(), queue.end(), lowest_first);

    const auto update = [&](uint32_t i) {
        ranks[i] = next[i] == none ? no_rank : rank_of(symbols[i], symbols[next[i]]);
        if (ranks[i] != no_rank) {
            queue.push_back(static_cast<uint64_t>(ranks[i]) << 32 | i);
            std::push_heap(queue.begin(), queue.end(), lowest_first);
        }
    };
    while (!queue.empty()) {
        std::pop_heap(queue.begin(), queue.end(), lowest_first);
        const uint32_t rank = static_cast<uint32_t>(queue.back() >> 32);
        const uint32_t i    = static_cast<uint32_t>(queue.back());
        queue.pop_back();
        if (ranks[i] != rank) {
            continue;
        }
        const uint32_t right = next[i];
        symbols[i]           = results_[rank];
        ranks[right]         = no_rank;
        next[i]              = next[right];
        if (next[i] != none) {
            prev[next[i]] = i;
        }
        update(i);
        if (prev[i] != none) {
            update(prev[i]);
        }
    }

    size_t n_left = 0;
    for (uint32_t i = 0; i != none; i = next[i]) {
        symbols[n_left++] = symbols[i];
    }
    symbols.resize(n_left);
}

} // namespace penelope
