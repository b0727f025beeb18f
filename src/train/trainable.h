// Which tensors a run trains, in which group of the optimizer, and how they are born. Names are those of the GGUF files the
// run writes: "blk.0.attn_q.weight.lora_a", "penelope.memory.anchor", "coconut.token.rows", "blk.0.attn_q.weight".
#pragma once

#include "model/backbone.h"
#include "sidecar/sidecar.h"
#include "train/optimizer.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penelope {

// Groups of the optimizer that share a rate.
enum class LrGroup { backbone, modules };

struct TrainableGroup {
    ParameterGroup parameters;
    LrGroup        lr_group;
};

// The projections that LoRA adapts, of all layers: calls visit(linear).
void for_each_projection(Backbone & model, const std::function<void(Linear & layer)> & visit);
// Every weight of the backbone, the embedding before a head that is tied to it: calls visit(spec), whose node is set.
void for_each_weight(Backbone & model, const std::function<void(const TensorSpec & spec)> & visit);

// rank(layer): of the pair for that projection.
TrainableGroup lora_group(Backbone & model, const std::function<int64_t(const Linear & layer)> & rank,
                          double weight_decay);

// Matrices of the modules, which decay, and the rest (rows, norms, biases), which does not.
std::vector<TrainableGroup> module_groups(const SidecarConfig & sidecar, int64_t n_embd, double weight_decay);

// All weights of the backbone: matrices decay; the embedding, norms and biases do not.
std::vector<TrainableGroup> backbone_groups(Backbone & model, double weight_decay);

// A LoRA half as PEFT starts it: A uniform within 1/sqrt(n_in), B zero.
std::vector<float> initial_lora(const std::string & name, const std::vector<int64_t> & ne, uint64_t seed);
// A tensor of the modules. anchor: the embedding that latent rows start from.
std::vector<float> initial_module(const TensorShape & tensor, const std::vector<float> & anchor, uint64_t seed);

} // namespace penelope
