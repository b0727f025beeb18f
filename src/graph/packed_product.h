// Matrix products with weights in the packed layout of cpu/packed_weight.h, as custom nodes. CPU only.
//
// A product is two nodes: one quantizes x (shared by all products that read x), one multiplies. A packed weight has its
// usual type and shape but its data is reordered, as in ggml's repacked buffers: only these products may read it.
#pragma once

#include "graph/graph.h"

#include <vector>

namespace penelope {

// Whether this CPU has a packed layout for a weight [n_in, n_out] of this type.
bool can_pack(ggml_type type, const int64_t * ne);

// Bytes of the packed weight.
size_t packed_size(Node weight);

// A weight whose memory is allocated, and its data in GGUF layout.
struct PackSource {
    Node         weight;
    const void * data;
};

// Packs the data into the memory of the weights, on several threads, and marks the weights as packed.
void pack_weights(const std::vector<PackSource> & sources);

bool is_packed(Node weight);

// weight [n_in, n_out], packed; x [n_in, rows...] F32 -> [n_out, rows...]. A row's bits do not depend on the other
// rows.
Node packed_product(Graph & g, Node weight, Node x);

} // namespace penelope
