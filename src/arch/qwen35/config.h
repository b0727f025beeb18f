// Hyperparameters of Qwen3.5: the shape of its delta nets and which layers are delta nets.
#pragma once

#include "arch/config.h"
#include "base/json.h"
#include "graph/ops_delta.h"

#include <vector>

namespace penelope {

struct Qwen35Config : ArchConfig {
    int               conv_kernel   = 4;
    int               state_dim     = 0; // S, width of a delta head
    int               n_key_heads   = 0;
    int               n_value_heads = 0;                 // a multiple of n_key_heads
    std::vector<bool> is_recurrent;                      // by layer
    std::vector<int>  rope_sections = { 11, 11, 10, 0 }; // M-RoPE sections of the vision axes; equal positions for text

    int n_key_features() const { return state_dim * n_key_heads; }
    int n_value_features() const { return state_dim * n_value_heads; }
    int n_channels() const { return 2 * n_key_features() + n_value_features(); } // q, k and v through the convolution
    DeltaShape delta() const { return { state_dim, n_key_heads, n_value_heads }; }
};

const Qwen35Config & qwen35_config(const ModelConfig & config);

void        read_qwen35_gguf(const GgufReader & file, ModelConfig & config);
void        write_qwen35_gguf(GgufWriter & writer, const ModelConfig & config);
void        read_qwen35_hf(const Json & json, const std::string & path, ModelConfig & config);
void        write_qwen35_hf(const ModelConfig & config, OrderedJson & json);
std::string describe_qwen35(const ModelConfig & config);

} // namespace penelope
