#include "graph/packed_product.h"

#include "cpu/packed_weight.h"

#include <algorithm>
#include <atomic>
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

// Groups [first, last) of one weight.
struct PackTask {
    const PackSource * source;
    int64_t            first, last;
};
constexpr int64_t kTaskBytes  = 1 << 20;
constexpr int64_t kMaxThreads = 8; // packing is limited by memory bandwidth

std::vector<PackTask> make_tasks(const std::vector<PackSource> & sources) {
    std::vector<PackTask> tasks;
    for (const PackSource & source : sources) {
        const int64_t n           = n_groups(source.weight->ne[1]);
        const int64_t group_bytes = int64_t(packed_size(source.weight)) / n;
        const int64_t each        = std::max<int64_t>(kTaskBytes / group_bytes, 1);
        for (int64_t first = 0; first < n; first += each) {
            tasks.push_back({ &source, first, std::min(first + each, n) });
        }
    }
    return tasks;
}

} // namespace

bool can_pack(ggml_type type, const int64_t * ne) {
    const cpu::PackedFormat * format = cpu::find_packed_format(type);
    return format && cpu::packed_kernels() && ne[0] % format->block_values == 0 && ne[1] >= cpu::kGroupRows;
}

size_t packed_size(Node weight) {
    return cpu::packed_bytes(*cpu::find_packed_format(weight->type), weight->ne[0], weight->ne[1]);
}

void pack_weights(const std::vector<PackSource> & sources) {
    const std::vector<PackTask> tasks = make_tasks(sources);
    std::atomic<size_t>         next{ 0 };
    const auto                  work = [&] {
        for (size_t i = next++; i < tasks.size(); i = next++) {
            Node weight = tasks[i].source->weight;
            cpu::pack_groups(*cpu::find_packed_format(weight->type), tasks[i].source->data, weight->ne[0],
                                              weight->ne[1], tasks[i].first, tasks[i].last, weight->data);
        }
    };
    const int64_t n_threads =
        std::min({ int64_t(std::thread::hardware_concurrency()), kMaxThreads, int64_t(tasks.size()) });
    std::vector<std::thread> threads;
    for (int64_t i = 1; i < n_threads; i++) {
        threads.emplace_back(work);
    }
    work();
    for (std::thread & thread : threads) {
        thread.join();
    }
    for (const PackSource & source : sources) {
        source.weight->extra = &packed_mark;
    }
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
