// The two layer types of Qwen3.5, gated attention and gated delta net. Both end in the same feed-forward block.
#pragma once

#include "arch/blocks.h"
#include "arch/qwen35/config.h"

namespace penelope {

class Qwen35Attention : public Layer {
  public:
    void       list_tensors(const ModelConfig & config, TensorTable & table) override;
    StateShape state(const ModelConfig &) const override { return {}; }
    Node       build(Graph & g, const LayerCall & call, Node x) const override;

  private:
    Node               attn_norm_ = nullptr, ffn_norm_ = nullptr; // [n_embd]
    AttentionWeights   w_;                                        // q: queries and gates
    FeedForwardWeights ffn_;
};

class Qwen35DeltaNet : public Layer {
  public:
    void       list_tensors(const ModelConfig & config, TensorTable & table) override;
    StateShape state(const ModelConfig & config) const override;
    Node       build(Graph & g, const LayerCall & call, Node x) const override;

  private:
    Node mix(Graph & g, const LayerCall & call, Node normed) const;

    Node               attn_norm_ = nullptr, ffn_norm_ = nullptr; // [n_embd]
    Linear             qkv_, gate_, alpha_, beta_, out_;
    Node               conv_ = nullptr; // [kernel, channels]
    Node               rate_ = nullptr; // [n_value_heads], negative
    Node               step_ = nullptr; // [n_value_heads]
    Node               norm_ = nullptr; // [S]
    FeedForwardWeights ffn_;
};

} // namespace penelope
