// Random numbers that are the same on every machine: the counter-based generator Philox4x32-10 (Salmon et al. 2011).
// Input: a seed, a stream and a position; output: 32-bit words and what is drawn from them. Any draw can be made again
// from (seed, stream, position) alone, so a resumed run continues exactly and a dropout mask needs no storage.
// Integers, uniforms, shuffles and choices are exact everywhere; normal() and poisson() go through the exp, log and cos
// of the C library in double precision, whose last bit may differ.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace penelope {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey     = std::array<uint32_t, 2>;

// The block function with ten rounds: four random words for a counter under a key.
PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key);

// A stream number for a purpose ("dropout", "shuffle", ...) and an index inside it (epoch, layer, ...): distinct
// purposes under one seed draw independent numbers.
uint64_t stream_id(std::string_view purpose, uint64_t index = 0);

class Rng {
  public:
    // position: how many 32-bit words of the stream to skip.
    explicit Rng(uint64_t seed, uint64_t stream = 0, uint64_t position = 0);

    uint64_t seed() const { return seed_; }
    uint64_t stream() const { return stream_; }

    // Words drawn so far; Rng(seed(), stream(), position()) continues here.
    uint64_t position() const { return position_; }

    uint32_t u32();
    uint64_t u64(); // two words, low one first

    // Uniform in 0..n-1 without bias; n > 0. Takes a varying number of words.
    uint64_t below(uint64_t n);

    float  uniform_float(); // [0, 1), 24 bits, one word
    double uniform();       // [0, 1), 53 bits, two words
    bool   chance(double p) { return uniform() < p; }

    double normal();             // standard normal by Box-Muller, four words
    int    poisson(double mean); // 0 <= mean <= 64, by inversion, two words

    // k different indices into weights, drawn one after another in proportion to the weights that are left, in the
    // order drawn. Weights are finite and >= 0; at least k of them are positive.
    std::vector<size_t> choose_weighted(const std::vector<double> & weights, size_t k);

    // k different indices out of 0..n-1, all ordered choices equally likely; k <= n.
    std::vector<size_t> choose(size_t n, size_t k);

    template <typename T> void shuffle(std::vector<T> & items) {
        for (size_t i = items.size(); i > 1; --i) {
            std::swap(items[i - 1], items[below(i)]);
        }
    }

  private:
    uint64_t      seed_;
    uint64_t      stream_;
    uint64_t      position_;
    PhiloxCounter block_ = {}; // the block that holds word position_ - 1, when position_ is not a multiple of 4
};

} // namespace penelope
