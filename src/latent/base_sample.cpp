#include "latent/base_sample.h"

#include "base/sha256.h"
#include "gguf/reader.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace penelope {

namespace {

constexpr size_t  k_most_tensors = 64;
constexpr int64_t k_run          = 256;   // the longest block of ggml's types
constexpr int64_t k_block        = 32;    // numbers that share a tolerance
constexpr float   k_slack        = 1.05f; // rounding to nearest is not quite what all types do
constexpr float   k_unseen =
    0.004f; // relative: as 8 bits round, which a file of a finer type may have gone through before

// Between the shares measured for quantized and for merged files: docs/format.md.
constexpr double k_limit        = 0.23;
constexpr double k_limit_coarse = 0.35;
constexpr double k_coarse =
    0.01; // rounding of both files beyond this share of a block's largest number: 5 bits and less

// Numbers as the type would keep them.
std::vector<float> rounded(const float * values, int64_t n, ggml_type type) {
    std::vector<float> out(values, values + n);
    if (type < 0 || type >= GGML_TYPE_COUNT || type == GGML_TYPE_F32 || ggml_blck_size(type) <= 0) {
        return out;
    }
    const ggml_type_traits * traits = ggml_get_type_traits(type);
    if (n % ggml_blck_size(type) != 0 || traits->to_float == nullptr || ggml_quantize_requires_imatrix(type)) {
        return out;
    }
    std::vector<uint8_t> bytes(ggml_row_size(type, n));
    ggml_quantize_chunk(type, values, bytes.data(), 0, 1, n, nullptr);
    traits->to_float(bytes.data(), out.data(), n);
    return out;
}

// The first n numbers of a row; zeros for a type that has none.
void read_run(const GgufTensor & tensor, int64_t row, int64_t n, float * out) {
    const auto * bytes =
        static_cast<const uint8_t *>(tensor.data) + size_t(row) * ggml_row_size(tensor.type, tensor.ne[0]);
    const auto to_float = ggml_get_type_traits(tensor.type)->to_float;
    if (tensor.type == GGML_TYPE_F32) {
        std::memcpy(out, bytes, size_t(n) * sizeof(float));
    } else if (to_float != nullptr && n % ggml_blck_size(tensor.type) == 0) {
        to_float(bytes, out, n);
    }
}

// By a hash of the name: the same tensors in every file of an architecture, spread over layers and kinds.
std::vector<std::pair<std::string, const GgufTensor *>> chosen_tensors(const GgufReader & base) {
    std::vector<std::pair<std::string, const GgufTensor *>> all;
    for (const GgufTensor & tensor : base.tensors()) {
        const bool is_matrix = tensor.n_dims == 2 && tensor.ne[0] >= k_block && tensor.name.rfind("blk.", 0) == 0;
        const bool is_lora   = tensor.name.find(".lora_") != std::string::npos; // in a bundle
        if (is_matrix && !is_lora) {
            all.emplace_back(sha256_hex(tensor.name), &tensor);
        }
    }
    std::sort(all.begin(), all.end());
    all.resize(std::min(all.size(), k_most_tensors));
    return all;
}

float largest_difference(const float * a, const float * b, int64_t n) {
    float largest = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = std::max(largest, std::fabs(a[i] - b[i]));
    }
    return largest;
}

float largest_of(const float * a, int64_t n) {
    float largest = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = std::max(largest, std::fabs(a[i]));
    }
    return largest;
}

struct Counts {
    size_t n_a = 0, n_b = 0; // numbers of a, put through b's type, that are not b's; and the other way round
    double rounding = 0;     // of the finer type relative to the block's largest number, summed over blocks
    size_t n_blocks = 0;
};

void compare_runs(const float * a, ggml_type type_a, const float * b, ggml_type type_b, int64_t n, Counts & counts) {
    const std::vector<float> a_in_b = rounded(a, n, type_b);
    const std::vector<float> b_in_a = rounded(b, n, type_a);
    for (int64_t first = 0; first < n; first += k_block) {
        const int64_t size    = std::min(k_block, n - first);
        const float   largest = largest_of(a + first, size);
        const float   finer   = std::min(largest_difference(a + first, a_in_b.data() + first, size),
                                         largest_difference(b + first, b_in_a.data() + first, size));
        const float   near    = std::max(k_slack * finer, k_unseen * largest);
        for (int64_t i = first; i < first + size; i++) {
            counts.n_a += !(std::fabs(a_in_b[size_t(i)] - b[i]) <= near); // so that NaN counts
            counts.n_b += !(std::fabs(b_in_a[size_t(i)] - a[i]) <= near);
        }
        counts.rounding += largest > 0 ? finer / largest : 0;
        counts.n_blocks++;
    }
}

} // namespace

BaseSample sample_base(const GgufReader & base) {
    BaseSample sample;
    for (const auto & [hash, tensor] : chosen_tensors(base)) {
        const int64_t n   = std::min(k_run, tensor->ne[0] / k_block * k_block);
        const int64_t row = int64_t(std::stoull(hash.substr(0, 8), nullptr, 16)) % tensor->ne[1];
        sample.runs.push_back(int32_t(tensor->type));
        sample.runs.push_back(int32_t(n));
        sample.values.resize(sample.values.size() + size_t(n));
        read_run(*tensor, row, n, sample.values.data() + sample.values.size() - size_t(n));
    }
    return sample;
}

SampleDifference compare_samples(const BaseSample & a, const BaseSample & b) {
    const SampleDifference other{ 1, k_limit };
    if (a.empty() || a.runs.size() != b.runs.size() || a.values.size() != b.values.size()) {
        return other;
    }
    Counts counts;
    size_t at = 0;
    for (size_t i = 0; i + 1 < a.runs.size(); i += 2) {
        const int64_t n = a.runs[i + 1];
        if (n != b.runs[i + 1] || n < 0 || size_t(n) > a.values.size() - at) {
            return other;
        }
        compare_runs(a.values.data() + at, ggml_type(a.runs[i]), b.values.data() + at, ggml_type(b.runs[i]), n, counts);
        at += size_t(n);
    }
    const bool coarse = counts.rounding > k_coarse * double(counts.n_blocks);
    return { double(std::min(counts.n_a, counts.n_b)) / double(a.values.size()), coarse ? k_limit_coarse : k_limit };
}

} // namespace penelope
