#include "base/rng.h"

#include <cassert>
#include <cmath>
#include <numeric>

namespace penelope {

namespace {

constexpr double k_two_pi = 6.283185307179586476925286766559;

PhiloxCounter stream_block(uint64_t seed, uint64_t stream, uint64_t index) {
    return philox4x32({ static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), static_cast<uint32_t>(stream),
                        static_cast<uint32_t>(stream >> 32) },
                      { static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32) });
}

} // namespace

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
    for (int round = 0; round < 10; ++round) {
        const uint64_t product_0 = uint64_t{ 0xD2511F53 } * counter[0];
        const uint64_t product_1 = uint64_t{ 0xCD9E8D57 } * counter[2];
        counter = { static_cast<uint32_t>(product_1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product_1),
                    static_cast<uint32_t>(product_0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product_0) };
        key[0] += 0x9E3779B9;
        key[1] += 0xBB67AE85;
    }
    return counter;
}

uint64_t stream_id(std::string_view purpose, uint64_t index) {
    // 64-bit FNV-1a over the name and the eight bytes of the index.
    uint64_t   hash = 0xCBF29CE484222325;
    const auto add  = [&hash](uint8_t byte) { hash = (hash ^ byte) * 0x100000001B3; };
    for (const char c : purpose) {
        add(static_cast<uint8_t>(c));
    }
    for (int shift = 0; shift < 64; shift += 8) {
        add(static_cast<uint8_t>(index >> shift));
    }
    return hash;
}

Rng::Rng(uint64_t seed, uint64_t stream, uint64_t position) : seed_(seed), stream_(stream), position_(position) {
    if (position_ % 4 != 0) {
        block_ = stream_block(seed_, stream_, position_ / 4);
    }
}

uint32_t Rng::u32() {
    if (position_ % 4 == 0) {
        block_ = stream_block(seed_, stream_, position_ / 4);
    }
    return block_[position_++ % 4];
}

uint64_t Rng::u64() {
    const uint64_t low = u32();
    return low | static_cast<uint64_t>(u32()) << 32;
}

uint64_t Rng::below(uint64_t n) {
    assert(n > 0);
    if (n <= UINT32_MAX) {
        // Lemire's method: the high half of word * n is the draw; low halves under 2^32 mod n would be counted twice.
        const uint32_t threshold = static_cast<uint32_t>((uint64_t{ 1 } << 32) % n);
        for (;;) {
            const uint64_t product = static_cast<uint64_t>(u32()) * n;
            if (static_cast<uint32_t>(product) >= threshold) {
                return product >> 32;
            }
        }
    }
    uint64_t mask = n - 1;
    for (int shift = 1; shift < 64; shift *= 2) {
        mask |= mask >> shift;
    }
    for (;;) {
        const uint64_t draw = u64() & mask;
        if (draw < n) {
            return draw;
        }
    }
}

float Rng::uniform_float() {
    return static_cast<float>(u32() >> 8) * 0x1p-24f;
}

double Rng::uniform() {
    return static_cast<double>(u64() >> 11) * 0x1p-53;
}

double Rng::normal() {
    const double radius_draw = 1.0 - uniform(); // (0, 1], so that the logarithm is finite
    const double angle_draw  = uniform();
    return std::sqrt(-2.0 * std::log(radius_draw)) * std::cos(k_two_pi * angle_draw);
}

int Rng::poisson(double mean) {
    assert(mean >= 0.0 && mean <= 64.0);
    const double u    = uniform();
    double       term = std::exp(-mean);
    double       sum  = term;
    int          k    = 0;
    while (u >= sum) {
        ++k;
        term              = term * mean / k;
        const double next = sum + term;
        if (next == sum && k > mean) {
            break; // the rest of the tail is below the resolution of u
        }
        sum = next;
    }
    return k;
}

std::vector<size_t> Rng::choose_weighted(const std::vector<double> & weights, size_t k) {
    std::vector<double> left  = weights;
    double              total = std::accumulate(left.begin(), left.end(), 0.0);
    std::vector<size_t> chosen;
    chosen.reserve(k);
    while (chosen.size() < k) {
        assert(total > 0.0);
        double point = uniform() * total;
        size_t pick  = left.size();
        for (size_t i = 0; i < left.size(); ++i) {
            if (left[i] > 0.0) {
                pick = i; // the last positive weight takes what rounding leaves over
                if (point < left[i]) {
                    break;
                }
                point -= left[i];
            }
        }
        assert(pick < left.size());
        chosen.push_back(pick);
        left[pick] = 0.0;
        total      = std::accumulate(left.begin(), left.end(), 0.0);
    }
    return chosen;
}

std::vector<size_t> Rng::choose(size_t n, size_t k) {
    assert(k <= n);
    std::vector<size_t> indices(n);
    std::iota(indices.begin(), indices.end(), size_t{ 0 });
    for (size_t i = 0; i < k; ++i) {
        std::swap(indices[i], indices[i + below(n - i)]);
    }
    indices.resize(k);
    return indices;
}

} // namespace penelope
