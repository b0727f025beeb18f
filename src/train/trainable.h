// Which tensors a run trains, their parameter groups, and their initialization. Names are those of the GGUF files:
// "blk.0.attn_q.weight.lora_a", "penelope.memory.anchor", "coconut.token.rows", "blk.0.attn_q.weight".
#pragma once

#include "model/backbone.h"
#include "sidecar/sidecar.h"
#include "train/optimizer.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penelope {

// Learning-rate group.
enum class LrGroup { backbone, modules };

struct TrainableGroup {
    ParameterGroup parameters;
    LrGroup        lr_group;
};

// Calls visit(linear) for the projections of all layers that LoRA adapts.
void for_each_projection(Backbone & model, const std::function<void(Linear & layer)> & visit);
// Calls visit(spec), with its node set, for every backbone weight; the embedding comes before a tied head.
void for_each_weight(Backbone & model, const std::function<void(const TensorSpec & spec)> & visit);

// rank(layer): LoRA rank of that projection.
TrainableGroup lora_group(Backbone & model, const std::function<int64_t(const Linear & layer)> & rank,
                          double weight_decay);

// Module matrices with weight decay, and the rest (rows, norms, biases) without.
std::vector<TrainableGroup> module_groups(const SidecarConfig & sidecar, int64_t n_embd, double weight_decay);

// Backbone weights: matrices with weight decay; embedding, norms and biases without.
std::vector<TrainableGroup> backbone_groups(Backbone & model, double weight_decay);

// Initial LoRA values as in PEFT: A uniform in +-1/sqrt(n_in), B zero.
std::vector<float> initial_lora(const std::string & name, const std::vector<int64_t> & ne, uint64_t seed);
// Initial values of a module tensor. anchor: the embedding that initializes latent rows.
std::vector<float> initial_module(const TensorShape & tensor, const std::vector<float> & anchor, uint64_t seed);

} // namespace penelope
