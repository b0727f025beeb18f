#include "graph/dropout.h"

#include "base/rng.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace penelope {

namespace {

constexpr int kExampleBits = 20; // low bits of the hash input hold the example, the others the step

} // namespace

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

void Draw::choose(const Dropout & source, Node x, int64_t first, int64_t n, int32_t * rows_of_bank) const {
    const int64_t               block   = dropout_block(x->ne[0]);
    const int64_t               per_row = x->ne[0] / block;
    const auto                  n_rows  = uint32_t(kDropoutBlock / block * kDropoutPatterns); // a power of two
    const std::vector<SeqRange> one{ { 0, 0, int(ggml_nrows(x)) } };
    int64_t                     next_row = 0; // of x
    for (const SeqRange & range : rows ? *rows : one) {
        const int64_t first_row = next_row;
        next_row += range.count;
        const int64_t begin = std::max(first, first_row * per_row);
        const int64_t end   = std::min(first + n, next_row * per_row);
        if (begin >= end) {
            continue;
        }
        const uint32_t example = source.examples.empty()
                                     ? uint32_t(range.stream)
                                     : source.examples[size_t(range.stream) % source.examples.size()];
        const uint64_t stream  = stream_id("dropout", source.step << kExampleBits | example);
        const int64_t  front =
            source.left_padding.empty() ? 0 : source.left_padding[size_t(range.stream) % source.left_padding.size()];
        // Blocks are numbered from the first real token of the example, four per counter; left padding has negative
        // numbers.
        const auto    block_position = uint64_t((range.row - front - first_row) * per_row + begin);
        PhiloxCounter words{};
        for (int64_t at = 0; at < end - begin; at++) {
            const uint64_t i = block_position + uint64_t(at);
            if (at == 0 || i % 4 == 0) {
                words = philox4x32({ uint32_t(i / 4), uint32_t(number), uint32_t(stream), uint32_t(stream >> 32) },
                                   { uint32_t(source.seed), uint32_t(source.seed >> 32) });
            }
            rows_of_bank[begin - first + at] = int32_t(words[i % 4] & (n_rows - 1));
        }
    }
}

Draw next_draw(Graph & g, Node x) {
    if (g.dropout_rows()) {
        int64_t n_rows = 0;
        for (const SeqRange & range : *g.dropout_rows()) {
            n_rows += range.count;
        }
        GGML_ASSERT(n_rows == ggml_nrows(x));
    }
    return { g.next_draw(), g.dropout_rows() };
}

Node device_dropout(Graph & g, Node x, const Dropout & source, const Draw & draw) {
    ggml_context * ctx      = g.ctx();
    const int64_t  block    = dropout_block(x->ne[0]);
    const int64_t  n_blocks = ggml_nelements(x) / block;
    Node           bank     = g.filled_input("dropout.bank", GGML_TYPE_F32, kDropoutBlock, kDropoutPatterns,
                                             [&source](Graph & graph, Node node) { graph.set(node, source.bank()); });
    Node           choice   = g.filled_input("dropout." + std::to_string(draw.number), GGML_TYPE_I32, n_blocks, 1,
                                             [&source, draw, x](Graph & graph, Node node) {
                                     std::vector<int32_t> rows(size_t(node->ne[0]));
                                     draw.choose(source, x, 0, node->ne[0], rows.data());
                                     graph.set(node, rows);
                                 });
    Node           parts    = ggml_reshape_2d(ctx, bank, block, kDropoutBlock / block * kDropoutPatterns);
    Node           mask     = ggml_get_rows(ctx, parts, choice); // [block, n_blocks]
    return ggml_mul(ctx, x, ggml_reshape_3d(ctx, mask, x->ne[0], x->ne[1], x->ne[2]));
}

} // namespace penelope
