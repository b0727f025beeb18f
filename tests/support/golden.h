// A golden case, converted: tests/golden/<name> (model, LoRA, Penelope modules and what the PyTorch reference computes on
// them) as GGUF files in a directory of its own.
//
//     test::GoldenCase golden("last");
//     golden.backbone();                            paths of the files in F32, made on the first call
//     golden.lora();
//     golden.sidecar();                             modules and LoRA pairs
//     golden.tensor("K3.ex0.M_2");                  expected values, row-major
//     golden.json()["examples"][0]["prompt_ids"];
#pragma once

#include "base/json.h"
#include "convert/convert.h"
#include "convert/safetensors.h"
#include "support/temp_dir.h"

#include <filesystem>
#include <string>
#include <vector>

namespace penelope::test {

// Cases with Penelope's modules, whatever their architecture.
inline const std::vector<std::string> kTrajectoryCases{
    "last",   "middle", "full", "overwrite", // llama
    "qwen2",                                 // biases
    "qwen3",                                 // heads of their own size, normed
    "qwen35",                                // delta nets and gated attention
};

class GoldenCase {
  public:
    explicit GoldenCase(const std::string & name)
        : source_(std::filesystem::path(PENELOPE_TEST_DIR) / "golden" / name),
          json_(read_json_file((source_ / "expected.json").string())),
          expected_(SafetensorsReader::open((source_ / "expected.safetensors").string())) {}

    // The directories as they are: "model", "lora", "penelope", and other files of the case.
    std::string source(const std::string & part) const { return (source_ / part).string(); }
    // A path for a file of the test's own.
    std::string file(const std::string & name) const { return dir_.file(name); }

    // Converted on the first call, F32.
    std::string backbone() const {
        return once("backbone.gguf", [&](ConvertOptions & options) { options.dir = source("model"); });
    }

    std::string lora() const {
        return once("lora.gguf", [&](ConvertOptions & options) {
            options.dir       = source("lora");
            options.base_path = backbone();
        });
    }
    std::string sidecar() const {
        return once("sidecar.gguf", [&](ConvertOptions & options) {
            options.dir       = source("penelope");
            options.lora_dir  = source("lora");
            options.base_path = backbone();
        });
    }

    // Only "last" has these: Coconut and CODI on the same backbone and LoRA.
    std::string coconut_sidecar() const { return baseline("coconut", Json::object()); }
    std::string codi_sidecar() const {
        return baseline("codi", { { "projection_length", 48 }, { "answer_prefix", "The answer is: " } });
    }

    const Json &              json() const { return json_; }
    const SafetensorsReader & expected() const { return expected_; }
    std::vector<float>        tensor(const std::string & name) const { return expected_.read_f32(name); }

    std::vector<int32_t> prompt_ids(size_t example) const { return json_["examples"].at(example)["prompt_ids"]; }
    std::vector<int32_t> target_ids(size_t example) const { return json_["examples"].at(example)["target_ids"]; }

  private:
    // The tensors of the method in <method>.safetensors as a directory, converted.
    std::string baseline(const std::string & method, const Json & own_fields) const {
        return once(method + ".gguf", [&](ConvertOptions & options) {
            const auto        all = SafetensorsReader::open(source(method + ".safetensors"));
            const std::string dir = file(method);
            std::filesystem::create_directory(dir);
            std::vector<const SafetensorsTensor *> tensors;
            SafetensorsWriter                      writer(dir + "/penelope.safetensors", false);
            for (const SafetensorsTensor & tensor : all.tensors()) {
                if (tensor.name.compare(0, method.size() + 1, method + ".") == 0) {
                    writer.add_tensor(tensor.name, tensor.type, tensor.shape);
                    tensors.push_back(&tensor);
                }
            }
            writer.begin_data();
            for (const SafetensorsTensor * tensor : tensors) {
                writer.write(tensor->data, tensor->size);
            }
            writer.finish();
            Json config = {
                { "version", 1 }, { "method", method }, { "k_max", 8 }, { "k_default", 3 }, { "task", "golden" }
            };
            config.update(own_fields);
            std::ofstream(dir + "/penelope_config.json") << config.dump();
            options.dir       = dir;
            options.lora_dir  = source("lora");
            options.base_path = backbone();
        });
    }

    template <typename Fill> std::string once(const std::string & name, Fill fill) const {
        ConvertOptions options;
        options.out_path = file(name);
        options.type     = "F32";
        if (!std::filesystem::exists(options.out_path)) {
            fill(options);
            convert_directory(options);
        }
        return options.out_path;
    }

    std::filesystem::path source_;
    TempDir               dir_;
    Json                  json_;
    SafetensorsReader     expected_;
};

} // namespace penelope::test
