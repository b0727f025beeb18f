// Whether a backbone has the weights a sidecar was trained on: quantized files pass, merged ones do not.
#include <doctest/doctest.h>

#include "base/rng.h"
#include "convert/convert.h"
#include "gguf/reader.h"
#include "sidecar/weight_fingerprint.h"
#include "support/temp_dir.h"

#include <ggml.h>

#include <cmath>

using namespace penelope;
using test::TempDir;

namespace {

const std::string models = std::string(PENELOPE_TEST_DIR) + "/../models/";
const std::string base   = models + "weave-1M-Q8_0.gguf";
const std::string lora   = models + "weave-1M-listops-cot-lora-F16.gguf";

WeightFingerprint sample(const std::string & path) {
    return fingerprint_weights(GgufReader::open(path));
}

std::string quantized(const std::string & in, const std::string & type, const std::string & out) {
    QuantizeOptions options;
    options.in_path          = in;
    options.out_path         = out;
    options.type             = type;
    options.allow_requantize = true;
    quantize_file(options);
    return out;
}

std::string merged(const std::string & type, const std::string & out) {
    ExportOptions options;
    options.as        = "merged";
    options.in_path   = lora;
    options.base_path = base;
    options.type      = type;
    options.out_path  = out;
    export_sidecar(options);
    return out;
}

} // namespace

TEST_CASE("quantized weights are the same, merged ones are not") {
    const TempDir           dir;
    const WeightFingerprint own = sample(base);
    REQUIRE(!own.empty());
    CHECK(compare_fingerprints(own, own).share == 0);
    for (const char * type : { "F32", "F16", "BF16", "Q8_0", "Q5_0", "Q5_K", "Q4_0", "Q4_1", "Q4_K_M" }) {
        const std::string           name(type);
        const FingerprintDifference same =
            compare_fingerprints(own, sample(quantized(base, type, dir.file("same-" + name))));
        const FingerprintDifference other = compare_fingerprints(own, sample(merged(type, dir.file("merged-" + name))));
        CAPTURE(name);
        CAPTURE(other.share);
        CAPTURE(other.by_types);
        CHECK(same.share < 0.01);
        CHECK(same.same());
        CHECK(other.share - other.by_types > 0.2);
        CHECK_FALSE(other.same());
    }
}

TEST_CASE("weights that were rounded once and written as F32 again are the same") {
    const TempDir     dir;
    const std::string source = merged("F32", dir.file("source")), half = quantized(source, "BF16", dir.file("half"));
    CHECK(compare_fingerprints(sample(source), sample(quantized(half, "F32", dir.file("whole")))).same());
}

TEST_CASE("two files quantized from a third are the same to each other") {
    const TempDir           dir;
    const std::string       source = merged("F32", dir.file("source")); // numbers that no type has rounded yet
    const WeightFingerprint eight  = sample(quantized(source, "Q8_0", dir.file("q8")));
    for (const char * type : { "F16", "Q5_K", "Q4_0", "Q4_1", "Q4_K_M" }) {
        const std::string name(type);
        CAPTURE(name);
        CHECK(compare_fingerprints(eight, sample(quantized(source, type, dir.file(name)))).same());
    }
    const WeightFingerprint four = sample(dir.file("Q4_0"));
    CHECK(compare_fingerprints(four, sample(dir.file("Q4_1"))).same());
}

namespace {

constexpr int     n_runs = 64;
constexpr int64_t n_run  = 256;

// Weights that no type has rounded: 64 runs of 256, a few large ones among many small, as matrices have them.
// changed: by so much, relative to each run, in one run of every `one_in`.
std::vector<float> some_weights(double changed, int one_in = 1) {
    Rng                rng(5);
    std::vector<float> values;
    for (int run = 0; run < n_runs; run++) {
        const double scale = 0.02 + 0.03 * rng.uniform();
        for (int64_t i = 0; i < n_run; i++) {
            const double weight = scale * rng.normal() * (rng.chance(0.02) ? 3 : 1);
            values.push_back(float(weight + (run % one_in == 0 ? changed : 0) * scale * rng.normal()));
        }
    }
    return values;
}

WeightFingerprint in_type(const std::vector<float> & weights, ggml_type type, const float * importance = nullptr) {
    WeightFingerprint    out;
    std::vector<uint8_t> bytes(ggml_row_size(type, n_run));
    std::vector<float>   kept(n_run);
    for (int run = 0; run < n_runs; run++) {
        out.runs.push_back(type);
        out.runs.push_back(int32_t(n_run));
        ggml_quantize_chunk(type, weights.data() + run * n_run, bytes.data(), 0, 1, n_run, importance);
        ggml_get_type_traits(type)->to_float(bytes.data(), kept.data(), n_run);
        out.values.insert(out.values.end(), kept.begin(), kept.end());
    }
    out.has_imatrix = importance != nullptr;
    return out;
}

const ggml_type fine_types[]   = { GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0 };
const ggml_type coarse_types[] = { GGML_TYPE_Q6_K, GGML_TYPE_Q5_0,   GGML_TYPE_Q5_1,  GGML_TYPE_Q5_K,
                                   GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,   GGML_TYPE_Q4_K,  GGML_TYPE_Q3_K,
                                   GGML_TYPE_Q2_K, GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS };

std::vector<ggml_type> all_types() {
    std::vector<ggml_type> all(std::begin(fine_types), std::end(fine_types));
    all.insert(all.end(), std::begin(coarse_types), std::end(coarse_types));
    return all;
}

} // namespace

TEST_CASE("any two types of the same weights are the same, whichever they were quantized from") {
    const std::vector<float> weights = some_weights(0);
    std::vector<float>       importance(n_run);
    Rng                      rng(6);
    for (float & value : importance) {
        value = float(std::exp(rng.normal()));
    }
    for (const ggml_type a : all_types()) {
        const WeightFingerprint one = in_type(weights, a);
        for (const ggml_type b : all_types()) {
            const std::string name_a = ggml_type_name(a);
            CAPTURE(name_a);
            const std::string name_b = ggml_type_name(b);
            CAPTURE(name_b);
            const FingerprintDifference third = compare_fingerprints(one, in_type(weights, b));
            CAPTURE(third.describe());
            CHECK(third.same());
            CHECK(compare_fingerprints(one, in_type(one.values, b)).same());
            // Two bits leave an importance matrix that much room.
            const bool is_hopeless = a == GGML_TYPE_Q2_K && b == GGML_TYPE_Q2_K;
            CHECK((is_hopeless || compare_fingerprints(one, in_type(weights, b, importance.data())).same()));
        }
    }
}

TEST_CASE("weights that moved by 3 % are others, where one of the two files is fine") {
    const std::vector<float> weights = some_weights(0), moved = some_weights(0.03);
    for (const ggml_type a : fine_types) {
        for (const ggml_type b : all_types()) {
            const std::string name_a = ggml_type_name(a);
            CAPTURE(name_a);
            const std::string name_b = ggml_type_name(b);
            CAPTURE(name_b);
            const FingerprintDifference difference = compare_fingerprints(in_type(weights, a), in_type(moved, b));
            CAPTURE(difference.share);
            CAPTURE(difference.by_types);
            CAPTURE(difference.distance);
            CHECK_FALSE(difference.same());
            CHECK_FALSE(compare_fingerprints(in_type(moved, b), in_type(weights, a)).same());
        }
    }
    for (const ggml_type type : coarse_types) {
        const std::string name = ggml_type_name(type);
        CAPTURE(name);
        CHECK_FALSE(compare_fingerprints(in_type(weights, type), in_type(moved, type)).same());
    }
}

TEST_CASE("a LoRA on a quarter of the tensors is seen") {
    const std::vector<float> weights = some_weights(0), moved = some_weights(0.04, 4);
    for (const ggml_type a : fine_types) {
        for (const ggml_type b :
             { GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q6_K, GGML_TYPE_Q5_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1 }) {
            const std::string name_a = ggml_type_name(a);
            CAPTURE(name_a);
            const std::string name_b = ggml_type_name(b);
            CAPTURE(name_b);
            const FingerprintDifference difference = compare_fingerprints(in_type(weights, a), in_type(moved, b));
            CAPTURE(difference.in_quarter);
            CAPTURE(difference.by_types_in_quarter);
            CHECK_FALSE(difference.same());
        }
    }
}

TEST_CASE("numbers that are none, and samples of another shape, are not the same") {
    WeightFingerprint own = sample(base), broken = own;
    for (float & value : broken.values) {
        value = NAN;
    }
    CHECK_FALSE(compare_fingerprints(own, broken).same());
    broken = own;
    broken.runs[1] += 32;
    CHECK_FALSE(compare_fingerprints(own, broken).same());
    broken.runs = { -5, 1 << 30 };
    CHECK_FALSE(compare_fingerprints(broken, broken).same());
    CHECK_FALSE(compare_fingerprints(own, WeightFingerprint{}).same());
}
