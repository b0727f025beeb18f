#include "graph/dropout.h"

#include "base/rng.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace penelope {

const std::vector<float> & Dropout::bank() const {
    if (!bank_) {
        const double share     = std::min(std::max(double(rate), 0.0), 0.999);
        const auto   n_dropped = int64_t(std::lround(share * double(kDropoutPatterns)));
        const float  factor    = float(double(kDropoutPatterns) / double(kDropoutPatterns - n_dropped));
        auto         bank      = std::make_shared<std::vector<float>>(size_t(kDropoutBlock * kDropoutPatterns), factor);
        for (int64_t column = 0; column < kDropoutBlock; column++) {
            Rng rng(seed, stream_id("dropout bank", uint64_t(column)));
            for (size_t pattern : rng.choose(size_t(kDropoutPatterns), size_t(n_dropped))) {
                (*bank)[pattern * size_t(kDropoutBlock) + size_t(column)] = 0.0f;
            }
        }
        bank_ = bank;
    }
    return *bank_;
}

int64_t dropout_block(int64_t n_features) {
    int64_t block = kDropoutBlock;
    while (n_features % block != 0) {
        block /= 2;
    }
    return block;
}

std::array<uint32_t, 4> dropout_choice(const Dropout & source, uint64_t draw, int64_t first, int64_t block) {
    const uint64_t stream = stream_id("dropout", source.step);
    const auto     n_rows = uint32_t(kDropoutBlock / block * kDropoutPatterns); // a power of two
    PhiloxCounter  choices =
        philox4x32({ uint32_t(first / 4), uint32_t(draw), uint32_t(stream), uint32_t(stream >> 32) },
                   { uint32_t(source.seed), uint32_t(source.seed >> 32) });
    for (uint32_t & choice : choices) {
        choice &= n_rows - 1;
    }
    return choices;
}

Node device_dropout(Graph & g, Node x, const Dropout & source, int64_t draw) {
    ggml_context * ctx      = g.ctx();
    const int64_t  block    = dropout_block(x->ne[0]);
    const int64_t  n_blocks = ggml_nelements(x) / block;
    Node           bank     = g.filled_input("dropout.bank", GGML_TYPE_F32, kDropoutBlock, kDropoutPatterns,
                                             [&source](Graph & graph, Node node) { graph.set(node, source.bank()); });
    Node           choice   = g.filled_input(
                    "dropout." + std::to_string(draw), GGML_TYPE_I32, n_blocks, 1,
                    [&source, draw, block](Graph & graph, Node node) {
            std::vector<int32_t> rows(size_t(node->ne[0]));
            for (size_t i = 0; i < rows.size(); i += 4) {
                const std::array<uint32_t, 4> four = dropout_choice(source, uint64_t(draw), int64_t(i), block);
                std::copy_n(four.begin(), std::min<size_t>(4, rows.size() - i), rows.begin() + ptrdiff_t(i));
            }
            graph.set(node, rows);
        });
    Node parts = ggml_reshape_2d(ctx, bank, block, kDropoutBlock / block * kDropoutPatterns);
    Node mask  = ggml_get_rows(ctx, parts, choice); // [block, n_blocks]
    return ggml_mul(ctx, x, ggml_reshape_3d(ctx, mask, x->ne[0], x->ne[1], x->ne[2]));
}

} // namespace penelope
