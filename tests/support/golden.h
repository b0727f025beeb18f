// A golden case, converted: tests/golden/<name> (model, LoRA, Penelope modules and what the PyTorch reference computes
// on them) as GGUF files in a directory of its own.
//
//     test::GoldenCase golden("last");
//     golden.backbone();                            paths of the files in F32, made on the first call
//     golden.lora();
//     golden.sidecar();                             modules and LoRA pairs
//     golden.tensor("K3.ex0.M_2");                  expected values, row-major
//     golden.greedy(3, 0);                          the answer to example 0 after three latent steps
#pragma once

#include "base/json.h"
#include "convert/convert.h"
#include "convert/safetensors.h"
#include "support/temp_dir.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace penelope::test {

// Cases with Penelope's modules, whatever their architecture.
inline const std::vector<std::string> kTrajectoryCases{
    "last",    "middle", "full", "overwrite", // llama
    "qwen2",                                  // biases
    "qwen3",                                  // heads of their own size, normed
    "qwen35",                                 // delta nets and gated attention
    "smollm3",                                // a layer without rotation
    "granite",                                // factors of embeddings, residuals, scores and logits
    "gemma3",                                 // sliding windows, norms around blocks
    "phi3",                                   // fused projections, partial rotation with factors
};

// The reference's training: four updates of AdamW on all examples.
struct GoldenRecipe {
    int                 n_steps; // latent
    int                 n_updates;
    double              lora_lr, module_lr;
    double              clip;
    std::vector<double> losses, norms, rate_factors; // of each update
};

class GoldenCase {
  public:
    explicit GoldenCase(const std::string & name);

    // The directories as they are: "model", "lora", "penelope", and other files of the case.
    std::string source(const std::string & part) const { return (source_ / part).string(); }
    // A path for a file of the test's own.
    std::string file(const std::string & name) const { return dir_.file(name); }

    // Converted on the first call, F32.
    std::string backbone() const;
    std::string lora() const;
    std::string sidecar() const;
    // Coconut and CODI on the same backbone and LoRA. "last" has both, "qwen35" Coconut.
    std::string coconut_sidecar() const;
    std::string codi_sidecar() const;

    const SafetensorsReader & expected() const { return expected_; }
    std::vector<float>        tensor(const std::string & name) const { return expected_.read_f32(name); }

    size_t               n_examples() const;
    std::string          prompt(size_t example) const;
    std::vector<int32_t> prompt_ids(size_t example) const;
    std::vector<int32_t> target_ids(size_t example) const;

    // After 0, 1, 3 or 6 latent steps; answers of the first two examples.
    std::vector<int32_t> greedy(int n_steps, size_t example) const;
    int                  layer_applications(int n_steps) const;

    GoldenRecipe recipe() const;

  private:
    std::string baseline(const std::string & method, const Json & own_fields) const;
    std::string once(const std::string & name, const std::function<void(ConvertOptions & options)> & fill) const;

    std::filesystem::path source_;
    TempDir               dir_;
    Json                  json_;
    SafetensorsReader     expected_;
};

} // namespace penelope::test
