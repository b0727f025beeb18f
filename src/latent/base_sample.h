// A fingerprint of a backbone's weights that survives quantization: some rows' beginnings, as numbers.
//
// When one file was quantized from the other, or both from a third, then putting the finer one's numbers through the coarser
// one's type gives the coarser one's numbers, but for the few on which the finer one's own rounding tips the scale. A LoRA that
// was merged, or any other training, moves the scales of whole blocks and with them many more numbers.
// docs/format.md has the shares measured for both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

class GgufReader;

struct BaseSample {
    std::vector<int32_t> runs;   // of each sampled tensor its ggml_type and how many numbers of it there are
    std::vector<float>   values; // the beginning of a row of each, one after the other

    bool empty() const { return values.empty(); }
};

// From the matrices of the layers, at most 64 of them, chosen by their names. Empty when the file has none.
BaseSample sample_base(const GgufReader & base);

struct SampleDifference {
    double share; // of numbers that the types do not explain, 0 to 1; 1 for samples of other shape
    double limit; // above it the weights are others: higher where both files are coarse, and rounding hides more
    bool   same() const { return share <= limit; }
};
SampleDifference compare_samples(const BaseSample & a, const BaseSample & b);

} // namespace penelope
