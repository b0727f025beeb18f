// Weights and caches of every type on the device of the suite. A quantized weight is compared with the CPU on the same
// weight written out in F32: kernels that round what they multiply with would otherwise be compared with each other.
#include <doctest/doctest.h>

#include "convert/convert.h"
#include "support/device.h"
#include "train/random_backbone.h"

#include <cctype>
#include <fstream>

using namespace penelope;
using namespace penelope::test;

namespace {

// Wide enough for every type: rows of 256, heads of 64.
class WideModel {
  public:
    WideModel() {
        std::ofstream(file("shape.toml"))
            << "name = \"wide\"\nlayers = 2\nwidth = 256\nheads = 4\nkv-heads = 2\nffn = 512\n"
               "context = 256\n";
        const RandomBackbone shape = read_backbone_shape(file("shape.toml"));
        write_random_backbone(shape, 11, file("F32.gguf"));
    }

    std::string file(const std::string & name) const { return dir_.file(name); }

    std::string with_type(const std::string & from, const std::string & type, const std::string & to) const {
        QuantizeOptions options;
        options.in_path          = file(from);
        options.out_path         = file(to);
        options.type             = type;
        options.allow_requantize = true;
        quantize_file(options);
        return options.out_path;
    }

  private:
    TempDir dir_;
};

std::vector<float> first_logits(const std::string & device, const std::string & base, ggml_type kv_type, size_t n) {
    const auto engine = load(device, base, "");
    Session    session(engine, session_options(kv_type));
    Tokens     prompt(n);
    for (size_t i = 0; i < n; i++) {
        prompt[i] = int32_t(37 * i % 251);
    }
    return engine->method("plain").prefill(session.context(), { { prompt, 0, 0 } }, 0).logits[0];
}

// Kernels may round what they multiply a weight or a cached row with to its own precision: half a unit in the last
// place of F16 or BF16, and of the eight bits that go beside quantized weights. Logits are of scale 3 and come from 14
// such products. A device that multiplies in 16 bits may also sum F16 products in F16: some 500 terms of either sign
// lose two bits more.
double rounding(const std::string & type) {
    return type == "F32" ? 0.0 : type == "F16" ? (has_16_bit_products() ? 1.0 / 512 : 1.0 / 2048) : 1.0 / 256;
}

} // namespace

TEST_CASE("weights of every type give what the same weights give in F32") {
    const WideModel model;
    for (const std::string type : { "F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q6_K" }) {
        CAPTURE(type);
        const std::string of_type =
            type == "F32" ? model.file("F32.gguf") : model.with_type("F32.gguf", type, type + ".gguf");
        const std::string decoded =
            type == "F32" ? of_type : model.with_type(type + ".gguf", "F32", type + ".f32.gguf");
        for (size_t n : { size_t(1), size_t(9), size_t(40) }) { // a vector, a few rows, a matrix
            CAPTURE(n);
            const auto expected = first_logits("CPU", decoded, GGML_TYPE_F32, n);
            const auto found    = first_logits(device_name(), of_type, GGML_TYPE_F32, n);
            CHECK(difference(found, expected) < std::max(double(tolerance()), 32 * rounding(type)));
        }
    }
}

TEST_CASE("caches of every type") {
    const WideModel model;
    const auto      expected = first_logits("CPU", model.file("F32.gguf"), GGML_TYPE_F32, 21);
    for (ggml_type type : { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0 }) {
        std::string name = ggml_type_name(type);
        std::transform(name.begin(), name.end(), name.begin(), [](char c) { return char(std::toupper(c)); });
        CAPTURE(name);
        const auto found = first_logits(device_name(), model.file("F32.gguf"), type, 21);
        CHECK(difference(found, expected) < std::max(double(tolerance()), 32 * rounding(name)));
    }
}
