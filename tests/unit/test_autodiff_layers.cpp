// Linear layers, rotary positions and attention against central differences and against each other.
#include "support/gradient_check.h"

#include "graph/ops.h"

#include <cstring>

using namespace gradient_check;
using penelope::AttentionShape;
using penelope::Linear;
using penelope::RopeParams;

namespace {

// A frozen weight the host fills.
Node constant(Graph & g, Fills & fills, ggml_type type, int64_t ne0, int64_t ne1, const std::vector<float> & values) {
    Node              node = g.input("constant", type, ne0, ne1);
    std::vector<char> bytes(ggml_nbytes(node));
    if (type == GGML_TYPE_F32) {
        std::memcpy(bytes.data(), values.data(), bytes.size());
    } else {
        ggml_quantize_chunk(type, values.data(), bytes.data(), 0, ne1, ne0, nullptr);
    }
    fill(fills, node, bytes);
    return node;
}

std::vector<float> transpose(const std::vector<float> & values, int64_t ne0, int64_t ne1) {
    std::vector<float> turned(values.size());
    for (int64_t i = 0; i < ne1; i++) {
        for (int64_t j = 0; j < ne0; j++) {
            turned[size_t(j * ne1 + i)] = values[size_t(i * ne0 + j)];
        }
    }
    return turned;
}

std::vector<ggml_fp16_t> causal_mask(int64_t n_kv, int64_t n_q) {
    std::vector<ggml_fp16_t> mask;
    for (int64_t i = 0; i < n_q; i++) {
        for (int64_t j = 0; j < n_kv; j++) {
            mask.push_back(ggml_fp32_to_fp16(j <= i + n_kv - n_q ? 0.0f : -INFINITY));
        }
    }
    return mask;
}

} // namespace

TEST_CASE("a trained linear with bias") {
    const Build build = [](Graph & g, const std::vector<Node> & x, Fills &) {
        Linear layer;
        layer.weight = x[1];
        layer.bias   = x[2];
        return penelope::linear(g, layer, x[0]);
    };
    check({ leaf({ 7, 5 }, 1), leaf({ 7, 3 }, 2), leaf({ 3 }, 3) }, build);
    check({ leaf({ 8, 16 }, 1), leaf({ 8, 12 }, 2), leaf({ 12 }, 3) }, build); // sizes of the blocked kernels
    check({ leaf({ 8, 1 }, 1), leaf({ 8, 12 }, 2), leaf({ 12 }, 3) }, build);
}

TEST_CASE("a weight used several times gets one product over all rows") {
    check({ leaf({ 5, 3 }, 1), leaf({ 5, 5 }, 2, 0.5), leaf({ 5, 2 }, 3) },
          [](Graph & g, const std::vector<Node> & x, Fills &) {
              Linear layer;
              layer.weight = x[1];
              Node y       = penelope::linear(g, layer, penelope::linear(g, layer, penelope::linear(g, layer, x[0])));
              return penelope::concat_rows(g, { y, penelope::linear(g, layer, x[2]) });
          });
}

TEST_CASE("a use whose result goes nowhere does not hold back the gradient of the weight") {
    const auto build = [](bool idle) {
        return [idle](Graph & g, const std::vector<Node> & x, Fills &) {
            Linear layer;
            layer.weight = x[1];
            if (idle) {
                g.expand(penelope::linear(g, layer, penelope::tanh(g, x[0])));
            }
            return penelope::linear(g, layer, x[0]);
        };
    };
    const std::vector<Leaf> leaves = { leaf({ 5, 3 }, 1), leaf({ 5, 4 }, 2) };
    CHECK(gradients(leaves, build(true)).gradients == gradients(leaves, build(false)).gradients);
}

TEST_CASE("a low-rank update of a frozen weight, with and without a kept transpose") {
    for (bool kept : { true, false }) {
        check({ leaf({ 7, 5 }, 1), leaf({ 7, 2 }, 2), leaf({ 2, 6 }, 3) },
              [kept](Graph & g, const std::vector<Node> & x, Fills & fills) {
                  const std::vector<float> values = random_values(7 * 6, 50);
                  Linear                   layer;
                  layer.weight     = constant(g, fills, GGML_TYPE_F32, 7, 6, values);
                  layer.transposed = kept ? constant(g, fills, GGML_TYPE_F32, 6, 7, transpose(values, 7, 6)) : nullptr;
                  layer.lora       = { x[1], x[2], 2.0f };
                  return penelope::linear(g, layer, x[0]);
              });
    }
}

TEST_CASE("low-rank updates that share their input") {
    check({ leaf({ 7, 5 }, 1), leaf({ 7, 2 }, 2), leaf({ 2, 6 }, 3), leaf({ 7, 3 }, 4), leaf({ 3, 6 }, 5) },
          [](Graph & g, const std::vector<Node> & x, Fills & fills) {
              Linear first, second;
              first.weight  = constant(g, fills, GGML_TYPE_F32, 7, 6, random_values(7 * 6, 50));
              first.lora    = { x[1], x[2], 2.0f };
              second.weight = constant(g, fills, GGML_TYPE_F32, 7, 6, random_values(7 * 6, 51));
              second.lora   = { x[3], x[4], 0.5f };
              return penelope::mul(g, penelope::linear(g, first, x[0]), penelope::linear(g, second, x[0]));
          });
}

TEST_CASE("frozen weights of other types give the gradient of the weight they hold") {
    const int64_t            n_in = 64, n_out = 32, rows = 9;
    const std::vector<float> values = random_values(n_in * n_out, 50);
    for (ggml_type type : { GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_1 }) {
        CAPTURE(ggml_type_name(type));
        // What the type makes of the values.
        std::vector<char>  bytes(ggml_row_size(type, n_in) * n_out);
        std::vector<float> rounded(values.size());
        ggml_quantize_chunk(type, values.data(), bytes.data(), 0, n_out, n_in, nullptr);
        ggml_get_type_traits(type)->to_float(bytes.data(), rounded.data(), n_in * n_out);

        const auto build = [&](ggml_type weight_type) {
            return [&, weight_type](Graph & g, const std::vector<Node> & x, Fills & fills) {
                Linear layer;
                layer.weight =
                    constant(g, fills, weight_type, n_in, n_out, weight_type == GGML_TYPE_F32 ? rounded : values);
                return penelope::linear(g, layer, x[0]);
            };
        };
        const std::vector<Leaf> leaves   = { leaf({ n_in, rows }, 1) };
        const Result            found    = gradients(leaves, build(type));
        const Result            expected = gradients(leaves, build(GGML_TYPE_F32));
        CHECK(relative_difference(found.gradients[0], expected.gradients[0]) < 5e-3); // BF16 products round dy
    }
}

TEST_CASE("rotary positions in both layouts, partial, scaled and with divisors") {
    for (int mode : { GGML_ROPE_TYPE_NORMAL, GGML_ROPE_TYPE_NEOX }) {
        for (bool divided : { false, true }) {
            check({ leaf({ 3 * 8, 5 }, 1) }, [mode, divided](Graph & g, const std::vector<Node> & x, Fills & fills) {
                Node positions = g.input("positions", GGML_TYPE_I32, 5);
                fill(fills, positions, std::vector<int32_t>{ 0, 3, 4, 11, 2 });
                RopeParams params;
                params.n_dims = 6;
                params.mode   = mode;
                if (divided) {
                    params.magnitude  = 1.3f;
                    params.freq_scale = 0.25f;
                    params.factors    = g.input("factors", GGML_TYPE_F32, 3);
                    fill(fills, params.factors, std::vector<float>{ 1.0f, 2.5f, 8.0f });
                }
                return penelope::rope(g, x[0], positions, 8, params);
            });
        }
    }
}

TEST_CASE("attention with shared key heads, masked and unmasked") {
    const struct {
        int head_dim, n_head, n_head_kv, n_q, n_kv;
    } cases[] = { { 4, 2, 2, 3, 5 }, { 4, 6, 2, 5, 5 }, { 3, 4, 1, 2, 7 }, { 8, 4, 2, 8, 16 } };
    for (const auto & c : cases) {
        for (bool masked : { false, true }) {
            check({ leaf({ c.head_dim * c.n_head, c.n_q }, 1), leaf({ c.head_dim * c.n_head_kv, c.n_kv }, 2),
                    leaf({ c.head_dim * c.n_head_kv, c.n_kv }, 3) },
                  [&](Graph & g, const std::vector<Node> & x, Fills & fills) {
                      Node mask = masked ? g.input("mask", GGML_TYPE_F16, c.n_kv, c.n_q) : nullptr;
                      if (masked) {
                          fill(fills, mask, causal_mask(c.n_kv, c.n_q));
                      }
                      const AttentionShape shape = { c.head_dim, c.n_head, c.n_head_kv, 0.5f };
                      return penelope::attention(g, x[0], x[1], x[2], mask, shape);
                  });
        }
    }
}

TEST_CASE("attention reads keys and values that are slices of a wider tensor") {
    const AttentionShape shape = { 4, 4, 2, 0.5f };
    check({ leaf({ 16, 3 }, 1), leaf({ 8, 9 }, 2), leaf({ 8, 9 }, 3) },
          [&](Graph & g, const std::vector<Node> & x, Fills &) {
              Node k = penelope::slice_rows(g, x[1], 2, 5);
              Node v = penelope::slice_rows(g, x[2], 4, 5);
              return penelope::attention(g, x[0], k, v, nullptr, shape);
          });
}

TEST_CASE("with a tape attention computes what the fused kernel computes") {
    const AttentionShape shape = { 32, 4, 2, 0.17f };
    const Leaf           q = leaf({ 128, 6 }, 1), k = leaf({ 64, 10 }, 2), v = leaf({ 64, 10 }, 3);
    const auto           build = [&](Graph & g, const std::vector<Node> & x, Fills & fills) {
        Node mask = g.input("mask", GGML_TYPE_F16, 10, 6);
        fill(fills, mask, causal_mask(10, 6));
        return penelope::attention(g, x[0], x[1], x[2], mask, shape);
    };
    const Result explicit_form = gradients({ q, k, v }, build);

    Graph             g;
    Fills             fills;
    std::vector<Node> x = { g.input("q", GGML_TYPE_F32, 128, 6), g.input("k", GGML_TYPE_F32, 64, 10),
                            g.input("v", GGML_TYPE_F32, 64, 10) };
    Node              y = build(g, x, fills);
    g.output(y);
    g.allocate(backend());
    penelope::set_node(x[0], q.values);
    penelope::set_node(x[1], k.values);
    penelope::set_node(x[2], v.values);
    penelope::set_node(fills[0].node, fills[0].bytes.data(), fills[0].bytes.size());
    g.compute(backend());
    CHECK(relative_difference(penelope::get_node(y), explicit_form.value) < 1e-3);
}
