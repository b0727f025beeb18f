// Whether a backbone has the weights a sidecar was trained on: quantized files pass, merged ones do not.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "convert/convert.h"
#include "gguf/reader.h"
#include "latent/base_sample.h"
#include "support/temp_dir.h"

#include <cmath>

using namespace penelope;
using test::TempDir;

namespace {

const std::string models = std::string(PENELOPE_TEST_DIR) + "/../models/";
const std::string base   = models + "weave-1M-Q8_0.gguf";
const std::string lora   = models + "weave-1M-listops-cot-lora-F16.gguf";

BaseSample sample(const std::string & path) {
    return sample_base(GgufReader::open(path));
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
    const TempDir    dir;
    const BaseSample own = sample(base);
    REQUIRE(!own.empty());
    CHECK(compare_samples(own, own).share == 0);
    for (const char * type : { "F32", "F16", "BF16", "Q8_0", "Q5_0", "Q5_K", "Q4_0", "Q4_1", "Q4_K_M" }) {
        const std::string      name(type);
        const SampleDifference same  = compare_samples(own, sample(quantized(base, type, dir.file("same-" + name))));
        const SampleDifference other = compare_samples(own, sample(merged(type, dir.file("merged-" + name))));
        CAPTURE(name);
        CAPTURE(other.share);
        CHECK(same.share < 0.01);
        CHECK(same.same());
        CHECK(other.share > 0.25);
        CHECK_FALSE(other.same());
    }
}

TEST_CASE("weights that were rounded once and written as F32 again are the same") {
    const TempDir     dir;
    const std::string source = merged("F32", dir.file("source")), half = quantized(source, "BF16", dir.file("half"));
    CHECK(compare_samples(sample(source), sample(quantized(half, "F32", dir.file("whole")))).same());
}

TEST_CASE("two files quantized from a third are the same to each other") {
    const TempDir     dir;
    const std::string source = merged("F32", dir.file("source")); // numbers that no type has rounded yet
    const BaseSample  eight  = sample(quantized(source, "Q8_0", dir.file("q8")));
    for (const char * type : { "F16", "Q5_K", "Q4_0", "Q4_1", "Q4_K_M" }) {
        const std::string name(type);
        CAPTURE(name);
        CHECK(compare_samples(eight, sample(quantized(source, type, dir.file(name)))).share < 0.15);
    }
    const BaseSample four = sample(dir.file("Q4_0"));
    CHECK(compare_samples(four, sample(dir.file("Q4_1"))).same());
}

TEST_CASE("numbers that are none, and samples of another shape, are not the same") {
    BaseSample own = sample(base), broken = own;
    for (float & value : broken.values) {
        value = NAN;
    }
    CHECK_FALSE(compare_samples(own, broken).same());
    broken = own;
    broken.runs[1] += 32;
    CHECK_FALSE(compare_samples(own, broken).same());
    broken.runs = { -5, 1 << 30 };
    CHECK_FALSE(compare_samples(broken, broken).same());
    CHECK_FALSE(compare_samples(own, BaseSample{}).same());
}
