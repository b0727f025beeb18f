#include "graph/batch_invariance.h"

#include "graph/packed_product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

namespace penelope {

namespace {

constexpr int64_t kTrialRows =
    64; // rows of the weight; the remainder of its shape is kept too, since kernels depend on it

// weight * x for test rows whose values use the whole mantissa.
std::vector<float> trial_product(const Backend & backend, Node weight, int64_t first, int64_t n_rows) {
    const int64_t      k = weight->ne[0], m = std::min(weight->ne[1], kTrialRows + weight->ne[1] % kTrialRows);
    Graph              g(nullptr, &backend);
    Node               x = g.input("x", GGML_TYPE_F32, k, n_rows);
    Node               y = ggml_mul_mat(g.ctx(), ggml_view_2d(g.ctx(), weight, k, m, weight->nb[1], 0), x);
    std::vector<float> values(size_t(k * n_rows));
    for (size_t i = 0; i < values.size(); i++) {
        values[i] = std::sin(0.7f * float(first * k + int64_t(i)) + 0.1f);
    }
    g.output(y);
    g.allocate(backend);
    g.set(x, values);
    g.compute(backend);
    return get_node(y);
}

bool same_bits(const float * a, const float * b, size_t n) {
    return std::memcmp(a, b, n * sizeof(float)) == 0;
}

} // namespace

bool is_batch_invariant(Node weight, int64_t n_few, int64_t n_many) {
    using Shape = std::tuple<ggml_backend_buffer_type_t, ggml_type, int64_t, int64_t, int64_t, int64_t>;
    static std::mutex            mutex;
    static std::map<Shape, bool> known;
    const Shape                  shape{
        ggml_backend_buffer_get_type(weight->buffer), weight->type, weight->ne[0], weight->ne[1], n_few, n_many
    };
    const std::lock_guard<std::mutex>     lock(mutex);
    const std::map<Shape, bool>::iterator found = known.find(shape);
    if (found != known.end()) {
        return found->second;
    }
    static const Backend     backend(find_device("CPU"), 1);
    const std::vector<float> all   = trial_product(backend, weight, 0, n_many);
    const std::vector<float> front = trial_product(backend, weight, 0, n_few);
    const std::vector<float> back  = trial_product(backend, weight, n_many - n_few, n_few);
    if (std::all_of(front.begin(), front.end(), [](float value) { return value == 0; })) {
        return true; // zero weights tell nothing about others of this shape: do not cache
    }
    return known[shape] = same_bits(all.data(), front.data(), front.size()) &&
                          same_bits(all.data() + all.size() - back.size(), back.data(), back.size());
}

bool depends_on_batch_position(const std::vector<Node> & weights) {
    // Some kernels process four rows at a time and leave the remainder to another kernel.
    constexpr int64_t kFew = 5, kMany = 17;
    return std::any_of(weights.begin(), weights.end(), [](Node weight) {
        return ggml_is_matrix(weight) && weight->ne[1] > 1 && !is_packed(weight) &&
               !is_batch_invariant(weight, kFew, kMany);
    });
}

int64_t n_invariant_splits(const Graph & g, Node weight, Node x) {
    const int64_t n           = g.n_sequences();
    const bool    is_affected = n > 1 && !g.tape() && g.backend() && g.backend()->is_cpu_only() && weight->buffer &&
                             ggml_is_matrix(weight) && ggml_is_matrix(x) && ggml_is_contiguous(x) && x->ne[1] % n == 0;
    return is_affected && !is_batch_invariant(weight, x->ne[1] / n, x->ne[1]) ? n : 1;
}

} // namespace penelope
