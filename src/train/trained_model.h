// A model in training: the backbone with its frozen weights, the trainable tensors in the optimizer, and the objective on them.
// The nodes of the backbone are the tensors the optimizer updates, so inference on it always sees the current weights.
#pragma once

#include "gguf/reader.h"
#include "model/load.h"
#include "text/tokenizer.h"
#include "train/method_training.h"
#include "train/trainable.h"

#include <memory>
#include <string>

namespace penelope {

struct TrainModelOptions {
    std::string base;                 // backbone GGUF
    std::string init;                 // LoRA or sidecar to continue; empty: none
    std::string method       = "cot"; // an entry of train/method_training.h
    bool        full         = false; // all backbone weights instead of LoRA
    int         lora_rank    = 16;    // of pairs that `init` does not hold
    float       lora_alpha   = 32;    // when `init` holds none
    float       dropout      = 0;     // of what the pairs read
    double      weight_decay = 0.01;
    double      beta2        = 0.999; // of the second moments
    SidecarConfig
             sidecar; // shape of the modules and texts; what `init` says comes first when it has the method's modules
    uint64_t seed             = 0;
    bool     cache_transposes = true;  // of frozen weights; false: made in the graph whenever they are needed
    bool     recompute        = false; // compute layers again in the backward instead of keeping what they made
};

class TrainedModel {
  public:
    // Throws Error for defects of the files, for an `init` that does not fit the base, and when memory is short.
    TrainedModel(const TrainModelOptions & choice, const Backend & backend);

    const Backbone &                    backbone() const { return backbone_; }
    const ModuleNodes &                 modules() const { return modules_; } // of the method, as they are now
    const MethodTraining &              training() const { return training_; }
    const Objective &                   objective() const { return *objective_; }
    Optimizer &                         optimizer() { return *optimizer_; }
    const Optimizer &                   optimizer() const { return *optimizer_; }
    const std::vector<TrainableGroup> & groups() const { return groups_; }
    const SidecarConfig &               sidecar() const { return sidecar_; }
    const TrainModelOptions &           choice() const { return choice_; }
    const Tokenizer &                   tokenizer() const { return tokenizer_; }
    Dropout &                           dropout() { return dropout_; }
    const GgufReader &                  base() const { return *base_; }
    int64_t                             n_frozen() const { return n_frozen_; }
    size_t                              weight_bytes() const { return store_.n_bytes() + transposes_.n_bytes(); }
    // What to multiply the loss with so that small gradients survive products in 16 bits: with weights of that size, and of
    // any size on a device, which may round what it multiplies.
    float loss_scale() const { return loss_scale_; }

  private:
    void load_init();
    void make_groups();
    void set_initial_values();
    void attach_parameters();
    void choose_loss_scale();
    void cache_transposes();

    TrainModelOptions                 choice_;
    const MethodTraining &            training_;
    std::shared_ptr<const GgufReader> base_, init_;
    Tokenizer                         tokenizer_;
    WeightStore                       store_, transposes_;
    Backbone                          backbone_;
    SidecarConfig                     sidecar_;
    std::vector<TrainableGroup>       groups_;
    std::unique_ptr<Optimizer>        optimizer_;
    ModuleNodes                       modules_;
    std::unique_ptr<Objective>        objective_;
    Dropout                           dropout_;
    bool                              is_cpu_; // runs on the CPU
    int64_t                           n_frozen_   = 0;
    float                             loss_scale_ = 1.0f;
};

} // namespace penelope
