// A fingerprint of a backbone's weights that survives quantization: some rows' beginnings, as numbers.
//
// Two files of the same weights differ by their rounding, and how much that is can be tried out: weights that the finer
// file may have been made from are drawn around its numbers and put through both types. What the two files differ more
// than these is not rounding: a LoRA that was merged, or other training. docs/format.md has the measurements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

class GgufReader;

struct WeightFingerprint {
    std::vector<int32_t> runs;   // of each sampled tensor its ggml_type and how many numbers of it there are
    std::vector<float>   values; // the beginning of a row of each, one after the other
    bool has_imatrix = false; // the file says that it was quantized with an importance matrix, which is not known here

    bool empty() const { return values.empty(); }
};

// From the matrices of the layers, at most 64 of them, chosen by their names. Empty when the file has none.
WeightFingerprint fingerprint_weights(const GgufReader & base);

struct FingerprintDifference {
    double share      = 1; // of numbers that one file's type does not turn into the other's, 0 to 1
    double by_types   = 0; // that share, as rounding the same weights gives it
    double in_quarter = 1; // both in the quarter of the tensors where each is largest: a LoRA may be on some alone
    double by_types_in_quarter = 0;
    double distance            = 0; // squared, as a multiple of what rounding the same weights gives

    bool share_counts = true; // not where an importance matrix has moved the numbers

    bool        same() const;     // as far as rounding leaves it visible
    std::string describe() const; // "70 % of the numbers compared differ, where the types explain 2 %"
};
// Samples of another shape, empty ones and those with numbers that are none or larger than any weight are not the same.
FingerprintDifference compare_fingerprints(const WeightFingerprint & a, const WeightFingerprint & b);

} // namespace penelope
