// The numbers that shape a Llama-architecture backbone, read and checked once.
#pragma once

#include <cstdint>
#include <string>

namespace penelope {

class GgufReader;

struct ModelConfig {
    std::string architecture; // "llama"
    std::string name;         // general.name, may be empty
    int         n_layer     = 0;
    int         n_embd      = 0;
    int         n_ff        = 0;
    int         n_head      = 0;
    int         n_head_kv   = 0;
    int         head_dim    = 0;
    int         n_vocab     = 0;
    int         n_ctx_train = 0;
    float       rms_eps     = 1e-5f;
    float       rope_base   = 10000.0f;

    int n_embd_q() const { return head_dim * n_head; }
    int n_embd_kv() const { return head_dim * n_head_kv; }
};

// Throws Error(unsupported) for a foreign architecture (naming the supported ones) and Error(format) for numbers that are
// missing, contradict each other or cannot be.
ModelConfig read_model_config(const GgufReader & file);

} // namespace penelope
