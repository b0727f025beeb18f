#include "graph/packed_product.h"

#include "cpu/packed_weight.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace penelope {

namespace {

char packed_mark; // its address in `extra` marks a packed weight

// The range of n that thread ith of nth computes.
struct Range {
    int64_t first, last;
};
Range share(int64_t n, int ith, int nth) {
    return { n * ith / nth, n * (ith + 1) / nth };
}

int64_t n_groups(int64_t n_out) {
    return (n_out + cpu::kGroupRows - 1) / cpu::kGroupRows;
}

void run_quantize(ggml_tensor * dst, int ith, int nth, void *) {
    const ggml_tensor * x     = dst->src[0];
    const Range         range = share(x->ne[1], ith, nth);
    for (int64_t i = range.first; i < range.last; i++) {
        cpu::packed_kernels()->quantize_row(static_cast<const float *>(x->data) + i * x->ne[0], x->ne[0],
                                            static_cast<char *>(dst->data) + size_t(i) * dst->nb[1]);
    }
}

void run_multiply(ggml_tensor * dst, int ith, int nth, void *) {
    const ggml_tensor * weight = dst->src[0];
    const ggml_tensor * x      = dst->src[1];
    const Range         range  = share(n_groups(weight->ne[1]), ith, nth);
    cpu::packed_kernels()->multiply({ cpu::find_packed_format(weight->type), weight->data, weight->ne[0], weight->ne[1],
                                      x->data, x->ne[1], static_cast<float *>(dst->data), range.first, range.last });
}

// x [n_in, rows] quantized for the kernels: I8 [bytes of a row, rows].
Node quantized(Graph & g, Node x) {
    Node & known = g.quantized(x);
    if (!known) {
        Node sources[] = { x };
        known = ggml_custom_4d(g.ctx(), GGML_TYPE_I8, int64_t(cpu::quantized_row_bytes(x->ne[0])), x->ne[1], 1, 1,
                               sources, 1, run_quantize, GGML_N_TASKS_MAX, nullptr);
    }
    return known;
}

// Packing is limited by memory bandwidth; a few threads saturate it.
constexpr int64_t kBytesPerThread = 4 << 20;
constexpr int64_t kMaxThreads     = 4;

} // namespace

bool can_pack(ggml_type type, const int64_t * ne) {
    const cpu::PackedFormat * format = cpu::find_packed_format(type);
    return format && cpu::packed_kernels() && ne[0] % format->block_values == 0 && ne[1] >= cpu::kGroupRows;
}

size_t packed_size(Node weight) {
    return cpu::packed_bytes(*cpu::find_packed_format(weight->type), weight->ne[0], weight->ne[1]);
}

void pack_weight(Node weight, const void * data) {
    const int64_t groups    = n_groups(weight->ne[1]);
    const int64_t n_threads = std::clamp<int64_t>(int64_t(packed_size(weight)) / kBytesPerThread, 1,
                                                  std::min<int64_t>(kMaxThreads, std::thread::hardware_concurrency()));
    const auto    work      = [&](int64_t i) {
        const Range range = share(groups, int(i), int(n_threads));
        cpu::pack_groups(*cpu::find_packed_format(weight->type), data, weight->ne[0], weight->ne[1], range.first,
                                 range.last, weight->data);
    };
    std::vector<std::thread> threads;
    for (int64_t i = 1; i < n_threads; i++) {
        threads.emplace_back(work, i);
    }
    work(0);
    for (std::thread & thread : threads) {
        thread.join();
    }
    weight->extra = &packed_mark;
}

bool is_packed(Node weight) {
    return weight->extra == &packed_mark;
}

Node packed_product(Graph & g, Node weight, Node x) {
    ggml_context * ctx  = g.ctx();
    Node           rows = x;
    if (!ggml_is_contiguous(x)) {
        rows = ggml_cont(ctx, x);
    }
    if (!ggml_is_matrix(x)) {
        rows = ggml_reshape_2d(ctx, rows, x->ne[0], ggml_nrows(x));
    }
    Node sources[] = { weight, quantized(g, rows) };
    Node y         = ggml_custom_4d(ctx, GGML_TYPE_F32, weight->ne[1], rows->ne[1], 1, 1, sources, 2, run_multiply,
                                    GGML_N_TASKS_MAX, nullptr);
    return ggml_is_matrix(x) ? y : ggml_reshape_4d(ctx, y, weight->ne[1], x->ne[1], x->ne[2], x->ne[3]);
}

} // namespace penelope
