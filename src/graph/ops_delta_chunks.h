// The delta rule over chunks of rows, with its gradient.
//
// For one head and a chunk of c rows, with G_i the sum of the decays up to row i (matrices below have row i and column
// j):
//   D_ij = exp(G_i - G_j) for j <= i, else 0
//   N_ij = -beta_i (k_i . k_j) D_ij for j < i, else 0;   T = (I - N)^-1 = I + N + N^2 + ... , exact because N^c = 0
//   X = V - (e^G K) A;   W = T (beta X)                  the deltas of all rows at once
//   Y = (e^G Q / sqrt(S)) A + P W,  P_ij = (q_i . k_j) D_ij / sqrt(S)
//   A' = e^tau A + (e^(tau - G) K)^T W,  tau = G_c       the state handed to the next chunk
// Backward, from dY and dA':
//   dW = P^T dY + (e^(tau - G) K) dA';  dR = T^T dW;  dX = beta dR;  dN = dR W^T (strictly lower).
// The inverse T itself is never differentiated.
// Everything inside a chunk is computed for all chunks and heads at once; only X, W, Y and A go from chunk to chunk.
#pragma once

#include "graph/ops_delta.h"

namespace penelope {

// q, k, v [S * H, n], decay and beta [H, n]; state flat or null. Needs a tape.
DeltaResult chunked_delta(Graph & g, Node q, Node k, Node v, Node decay, Node beta, Node state, int64_t head_dim,
                          int64_t n_heads);

} // namespace penelope
