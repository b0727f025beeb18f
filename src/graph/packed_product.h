// Products with weights in the packed layout of cpu/packed_weight.h, as custom nodes of ggml. They run on the CPU alone.
//
// A product is two nodes: one quantizes x, and all products that read x share it; one multiplies. A packed weight is a tensor of
// its own type and shape whose data has another order, as in ggml's repacked buffers: products may read it, nothing else.
#pragma once

#include "graph/graph.h"

namespace penelope {

// Whether this processor has a packed layout for such a weight [n_in, n_out].
bool can_pack(ggml_type type, const int64_t * ne);

// Bytes of the packed weight.
size_t packed_size(Node weight);

// Packs `data`, the weight as a file has it, into the memory of the node and marks the node as packed.
void pack_weight(Node weight, const void * data);

bool is_packed(Node weight);

// weight [n_in, n_out], packed; x [n_in, rows...] F32 -> [n_out, rows...]. A row's bits do not depend on the other rows.
Node packed_product(Graph & g, Node weight, Node x);

} // namespace penelope
