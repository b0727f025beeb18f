#include "support/gradient_check.h"

#include "graph/ops_loss.h"

using namespace gradient_check;
using penelope::CrossEntropy;
using penelope::Linear;

namespace {

const std::vector<int32_t> kTargets = { 3, 0, 10, 3, 7 };
const std::vector<float>   kWeights = { 0.2f, 0.0f, 1.5f, 0.3f, 0.7f };

// The loss of five rows; leaves are hidden [d, 5] and the head [d, n_vocab].
Build loss_of(size_t max_logit_bytes, bool rows = false) {
    return [=](Graph & g, const std::vector<Node> & x, Fills & fills) {
        Node targets = g.input("targets", GGML_TYPE_I32, 5);
        Node weights = g.input("weights", GGML_TYPE_F32, 5);
        fill(fills, targets, kTargets);
        fill(fills, weights, kWeights);
        Linear head;
        head.weight               = x[1];
        const CrossEntropy result = penelope::cross_entropy(g, head, x[0], targets, weights, max_logit_bytes);
        return rows ? result.rows : result.loss;
    };
}

} // namespace

TEST_CASE("the loss is the weighted sum over rows") {
    const Leaf   hidden = leaf({ 6, 5 }, 1), head = leaf({ 6, 11 }, 2);
    const Result rows = Program({ hidden, head }, loss_of(1 << 20, true), false).run({ hidden, head }, {});
    const Result loss = Program({ hidden, head }, loss_of(1 << 20), false).run({ hidden, head }, {});
    double       sum  = 0.0;
    for (int i = 0; i < 5; i++) {
        double total = 0.0, of_target = 0.0;
        for (int v = 0; v < 11; v++) {
            double logit = 0.0;
            for (int j = 0; j < 6; j++) {
                logit += double(hidden.values[size_t(i * 6 + j)]) * head.values[size_t(v * 6 + j)];
            }
            total += std::exp(logit);
            of_target = v == kTargets[size_t(i)] ? logit : of_target;
        }
        const double expected = std::log(total) - of_target;
        CHECK(rows.value[size_t(i)] == doctest::Approx(expected).epsilon(1e-5));
        sum += expected * kWeights[size_t(i)];
    }
    REQUIRE(loss.value.size() == 1);
    CHECK(loss.value[0] == doctest::Approx(sum).epsilon(1e-5));
}

TEST_CASE("gradients of the hidden rows and of the head") {
    for (size_t bytes : { size_t(1) << 20, size_t(2 * 11 * 4) }) {
        check({ leaf({ 6, 5 }, 1, 0.7), leaf({ 6, 11 }, 2, 0.7) }, loss_of(bytes));
    }
}

TEST_CASE("the result does not depend on how rows are cut into pieces") {
    const std::vector<Leaf> leaves = { leaf({ 8, 5 }, 1), leaf({ 8, 12 }, 2) };
    const Result            whole  = gradients(leaves, loss_of(1 << 20));
    for (size_t n : { 1, 2, 3, 4 }) {
        const Result pieces = gradients(leaves, loss_of(n * 12 * sizeof(float)));
        CHECK(relative_difference(pieces.value, whole.value) < 1e-6);
        CHECK(relative_difference(pieces.gradients[0], whole.gradients[0]) < 1e-6);
        CHECK(relative_difference(pieces.gradients[1], whole.gradients[1]) < 1e-6);
    }
}

TEST_CASE("a large vocabulary is contracted in pieces; the head may be kept in another type or without a transpose") {
    const int64_t      d = 512, n_vocab = 9000, rows = 3;
    const Leaf         hidden = leaf({ d, rows }, 1, 0.1); // logits of a few units
    std::vector<float> head   = random_values(d * n_vocab, 2);
    for (ggml_type type : { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K }) {
        CAPTURE(ggml_type_name(type));
        std::vector<char> bytes(ggml_row_size(type, d) * n_vocab);
        ggml_quantize_chunk(type, head.data(), bytes.data(), 0, n_vocab, d, nullptr);
        std::vector<float> rounded(head.size());
        if (type == GGML_TYPE_F32) {
            rounded = head;
        } else {
            ggml_get_type_traits(type)->to_float(bytes.data(), rounded.data(), d * n_vocab);
        }
        const Result result = gradients({ hidden }, [&](Graph & g, const std::vector<Node> & x, Fills & fills) {
            Node   targets = g.input("targets", GGML_TYPE_I32, rows);
            Node   weights = g.input("weights", GGML_TYPE_F32, rows);
            Linear layer;
            layer.weight = g.input("head", type, d, n_vocab);
            fill(fills, targets, std::vector<int32_t>{ 8999, 4096, 17 });
            fill(fills, weights, std::vector<float>{ 1.0f, 2.0f, 0.5f });
            fill(fills, layer.weight, bytes);
            return penelope::cross_entropy(g, layer, x[0], targets, weights).loss;
        });
        // In double, from the weights as the type holds them.
        const std::vector<float>   seed    = random_values(1, 99);
        const std::vector<int64_t> targets = { 8999, 4096, 17 };
        const std::vector<double>  weights = { 1.0, 2.0, 0.5 };
        std::vector<float>         expected;
        for (int64_t i = 0; i < rows; i++) {
            std::vector<double> p(static_cast<size_t>(n_vocab));
            double              total = 0.0;
            for (int64_t v = 0; v < n_vocab; v++) {
                double logit = 0.0;
                for (int64_t j = 0; j < d; j++) {
                    logit += double(hidden.values[size_t(i * d + j)]) * rounded[size_t(v * d + j)];
                }
                total += p[size_t(v)] = std::exp(logit);
            }
            for (int64_t j = 0; j < d; j++) {
                double sum = -rounded[size_t(targets[size_t(i)] * d + j)];
                for (int64_t v = 0; v < n_vocab; v++) {
                    sum += p[size_t(v)] / total * rounded[size_t(v * d + j)];
                }
                expected.push_back(float(sum * weights[size_t(i)] * seed[0]));
            }
        }
        // All but F32 round the hidden rows in the product that makes the logits.
        CHECK(relative_difference(result.gradients[0], expected) < (type == GGML_TYPE_F32 ? 1e-6 : 4e-3));
    }
}

TEST_CASE("a target no row would ever choose gives a finite loss and the right gradient") {
    Leaf hidden = leaf({ 2, 5 }, 1), head = leaf({ 2, 11 }, 2);
    std::fill(hidden.values.begin(), hidden.values.end(), 10.0f);
    std::fill(head.values.begin(), head.values.end(), 0.0f);
    head.values[2 * 3]  = -30.0f; // logit -300 for entry 3, zero for the others
    const Result result = gradients({ hidden, head }, loss_of(1 << 20));
    CHECK(std::isfinite(result.value[0]));
    const float seed = random_values(1, 99)[0];
    CHECK(result.gradients[0][0] == doctest::Approx(0.2f * 30.0f * seed)); // w (0 - W_target)
}

TEST_CASE("a NaN in the hidden rows reaches the loss") {
    Leaf hidden = leaf({ 6, 5 }, 1), head = leaf({ 6, 11 }, 2);
    hidden.values[13]   = NAN;
    const Result result = Program({ hidden, head }, loss_of(1 << 20), false).run({ hidden, head }, {});
    CHECK(std::isnan(result.value[0]));
}
