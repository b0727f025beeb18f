// What ggml is asked to round: no type and no numbers end the process.
#include <doctest/doctest.h>

#include "convert/convert.h"
#include "gguf/keys.h"
#include "gguf/quantize_support.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "sidecar/weight_fingerprint.h"
#include "support/errors.h"
#include "support/temp_dir.h"

#include <cstring>
#include <string>
#include <vector>

using namespace penelope;
using test::contains;
using test::error_of;
using test::TempDir;

namespace {

constexpr int64_t n_run = 256;

// Numbers a file may hold, of any size.
const std::vector<std::vector<float>> & odd_numbers() {
    static const std::vector<std::vector<float>> all = [] {
        std::vector<std::vector<float>> made;
        for (const float value : { 0.0f, 1e-38f, 1e-20f, 1.0f, 1e10f, 1e30f, -3e38f }) {
            made.emplace_back(n_run, value);
        }
        std::vector<float> mixed(n_run);
        for (size_t i = 0; i < mixed.size(); i++) {
            mixed[i] = i % 7 == 0 ? 3e38f : i % 3 ? -1e-38f : 1e19f;
        }
        made.push_back(mixed);
        for (size_t i = 0; i < mixed.size(); i++) {
            mixed[i] = i % 7 == 0 ? 65504.0f : i % 3 ? -1e-38f : 0.01f;
        }
        made.push_back(mixed);
        return made;
    }();
    return all;
}

void write_file(const std::string & path, const std::string & kind, const std::vector<std::string> & names,
                const std::vector<std::vector<int64_t>> & shapes, ggml_type type,
                const std::vector<std::vector<float>> & values) {
    GgufWriter writer(path, true);
    writer.set_str(keys::general_architecture, "llama");
    writer.set_str(keys::general_type, kind);
    if (kind == "adapter") {
        writer.set_str(keys::adapter_type, "lora");
        writer.set_f32(keys::adapter_lora_alpha, 1.0f);
    }
    for (size_t i = 0; i < names.size(); i++) {
        writer.add_tensor(names[i], type, shapes[i]);
    }
    writer.begin_data();
    for (size_t i = 0; i < names.size(); i++) {
        std::vector<uint8_t> bytes(ggml_row_size(type, shapes[i][0]) * size_t(shapes[i][1]));
        if (!values.empty()) {
            std::memcpy(bytes.data(), values[i].data(), bytes.size());
        }
        writer.write_tensor(names[i], bytes.data(), bytes.size());
    }
    writer.finish();
}

// A LoRA on one matrix of zeros, merged into it.
void merge(const TempDir & dir, ggml_type type, float factor, const std::string & as_type = "") {
    write_file(dir.file("base.gguf"), "model", { "w.weight" }, { { n_run, 2 } }, type, {});
    std::vector<float> a(n_run);
    for (size_t i = 0; i < a.size(); i++) {
        a[i] = factor * (float(i % 17) - 8);
    }
    write_file(dir.file("lora.gguf"), "adapter", { "w.weight.lora_a", "w.weight.lora_b" }, { { n_run, 1 }, { 1, 2 } },
               GGML_TYPE_F32, { a, { 1.0f, -1.0f } });
    ExportOptions options;
    options.as        = "merged";
    options.in_path   = dir.file("lora.gguf");
    options.base_path = dir.file("base.gguf");
    options.out_path  = dir.file("merged.gguf");
    options.type      = as_type;
    options.force     = true;
    export_sidecar(options);
}

} // namespace

TEST_CASE("samples of any numbers in any type are compared") {
    for (int type = -1; type <= GGML_TYPE_COUNT; type++) {
        for (const std::vector<float> & values : odd_numbers()) {
            CAPTURE(type);
            CAPTURE(values[1]);
            WeightFingerprint sample;
            sample.runs            = { type, int32_t(n_run) };
            sample.values          = values;
            const bool are_weights = values[1] >= -65504 && values[1] <= 65504 && values[0] <= 65504;
            CHECK((are_weights || !compare_fingerprints(sample, sample).same()));
        }
    }
}

TEST_CASE("a LoRA is merged into a base of any type, or the type is refused") {
    const TempDir dir;
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const auto type = ggml_type(i);
        if (ggml_blck_size(type) <= 0) {
            continue;
        }
        const std::string name = ggml_type_name(type);
        CAPTURE(name);
        switch (quantize_support(type)) {
            case QuantizeSupport::any:
                merge(dir, type, 0.01f);
                CHECK(GgufReader::open(dir.file("merged.gguf")).tensors()[0].type == type);
                break;
            case QuantizeSupport::weights_only:
                CHECK(contains(error_of([&] { merge(dir, type, 1e28f); }).message(), "holds values too large for IQ"));
                break;
            case QuantizeSupport::needs_imatrix: {
                const Error error = error_of([&] { merge(dir, type, 0.01f); });
                CHECK(error.kind == ErrorKind::unsupported);
                CHECK(contains(error.message(), "with an importance matrix only"));
                CHECK(contains(error.hint, "--type"));
                break;
            }
            case QuantizeSupport::none:
                CHECK(error_of([&] { merge(dir, type, 0.01f); }).kind == ErrorKind::unsupported);
        }
    }
}
