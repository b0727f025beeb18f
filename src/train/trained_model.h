// A model in training: the backbone with frozen weights, the trainable tensors in the optimizer, and the objective. The
// backbone refers to the tensors that the optimizer updates, so inference always uses the current weights.
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
    std::string init;                 // LoRA or sidecar to start from; empty: none
    std::string method       = "cot"; // an entry of train/method_training.h
    bool        full         = false; // all backbone weights instead of LoRA
    int         lora_rank    = 16;    // of LoRA pairs that `init` does not have
    float       lora_alpha   = 32;    // if `init` has none
    float       dropout      = 0;     // LoRA dropout
    double      weight_decay = 0.01;
    double      beta2        = 0.999; // AdamW
    SidecarConfig
             sidecar; // shape of the modules and texts; what `init` says comes first when it has the method's modules
    uint64_t seed             = 0;
    bool     cache_transposes = true;  // of frozen weights; false: transposed in the graph
    bool     recompute        = false; // activation checkpointing
};

class TrainedModel {
  public:
    // Throws Error for damaged files, for an `init` that does not match the base, and when memory is short.
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
    // Loss scaling, so that small gradients do not underflow in 16-bit matrix products: used with 16-bit weights, and
    // on every device but the CPU, which may round operands.
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
