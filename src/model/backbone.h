// A decoder-only Transformer taken apart: embedding, any interval of layers on any rows, head.
//
// A Backbone is a plain set of nodes; whoever loaded or trains the weights owns their memory. The builders below serve
// inference and training alike.
#pragma once

#include "graph/ops.h"
#include "model/config.h"
#include "model/kv.h"
#include "model/rows.h"

#include <vector>

namespace penelope {

struct LlamaLayer {
    Node   attn_norm; // [n_embd]
    Linear q, k, v, o;
    Node   ffn_norm; // [n_embd]
    Linear gate, up, down;
};

struct Backbone {
    ModelConfig             config;
    Node                    embedding = nullptr; // [n_embd, n_vocab]
    std::vector<LlamaLayer> layers;
    Node                    output_norm = nullptr; // [n_embd]
    Linear                  head;                  // [n_embd, n_vocab]
    RopeParams              rope;
    bool                    recompute = false; // training: layers are computed again in the backward instead of kept
};

// F_[first:last): the residual stream x [n_embd, n_rows] through layers first..last-1. Keys and values go to and come from
// `kv`. With `queries`, the last layer computes only keys and values at the other rows, and the result has the kept rows
// alone (null when none are kept). Each layer is counted as one sequential application.
Node run_layers(Graph & g, const Backbone & model, int first, int last, Node x, const Rows & rows, KvStore & kv,
                const Queries * queries = nullptr);

Node final_norm(Graph & g, const Backbone & model, Node x);
// Final norm and head: [n_embd, n] -> [n_vocab, n].
Node logits(Graph & g, const Backbone & model, Node x);

} // namespace penelope
