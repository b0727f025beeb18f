#include "sidecar/weight_fingerprint.h"

#include "base/sha256.h"
#include "gguf/keys.h"
#include "gguf/reader.h"

#include <ggml.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace penelope {

namespace {

constexpr size_t  kMaxTensors = 64;
constexpr int64_t k_run       = 256; // the longest block of ggml's types
constexpr int64_t k_block     = 32;

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
    all.resize(std::min(all.size(), kMaxTensors));
    return all;
}

} // namespace

WeightFingerprint fingerprint_weights(const GgufReader & base) {
    WeightFingerprint fingerprint;
    fingerprint.has_imatrix = base.find_str(keys::quantize_imatrix_file).has_value();
    for (const auto & [hash, tensor] : chosen_tensors(base)) {
        const int64_t n   = std::min(k_run, tensor->ne[0] / k_block * k_block);
        const int64_t row = int64_t(std::stoull(hash.substr(0, 8), nullptr, 16)) % tensor->ne[1];
        fingerprint.runs.push_back(int32_t(tensor->type));
        fingerprint.runs.push_back(int32_t(n));
        fingerprint.values.resize(fingerprint.values.size() + size_t(n));
        read_run(*tensor, row, n, fingerprint.values.data() + fingerprint.values.size() - size_t(n));
    }
    return fingerprint;
}

} // namespace penelope
