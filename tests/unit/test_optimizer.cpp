#include "support/gradient_check.h"

#include "base/error.h"
#include "graph/ops.h"
#include "train/optimizer.h"

using namespace gradient_check;
using penelope::Optimizer;
using penelope::ParameterGroup;
using penelope::UpdateResult;

namespace {

const std::vector<ParameterGroup> kGroups = {
    { "matrices", 0.01, { { "w", { 5, 3 } }, { "far", { 1000, 3 } } } },
    { "vectors", 0.0, { { "b", { 3 } }, { "unused", { 7 } } } },
};

// loss = sum over the rows of x of sum(tanh(W x + b) * seed), so that gradients change with the weights.
class Problem {
  public:
    explicit Problem(Optimizer & optimizer) : graph_(&tape_) {
        optimizer.watch(tape_);
        Node             x = graph_.input("x", GGML_TYPE_F32, 5, 4);
        Node             s = graph_.input("seed", GGML_TYPE_F32, 3, 4);
        penelope::Linear layer;
        layer.weight = optimizer.parameter("w");
        layer.bias   = optimizer.parameter("b");
        Node y       = penelope::tanh(graph_, penelope::linear(graph_, layer, x));
        tape_.backward(graph_, y, s);
        optimizer.collect(graph_, tape_);
        graph_.allocate(backend());
        x_ = x;
        s_ = s;
    }

    void compute(int i, float scale = 1.0f) {
        std::vector<float> seed = random_values(12, 200 + uint64_t(i));
        for (float & value : seed) {
            value *= scale;
        }
        penelope::set_node(x_, random_values(20, 100 + uint64_t(i)));
        penelope::set_node(s_, seed);
        graph_.compute(backend());
    }

  private:
    Tape  tape_;
    Graph graph_;
    Node  x_, s_;
};

void initialize(Optimizer & optimizer) {
    optimizer.set_values("w", random_values(15, 1));
    optimizer.set_values("far", random_values(3000, 2));
    optimizer.set_values("b", random_values(3, 3));
    optimizer.set_values("unused", random_values(7, 4));
}

// torch.optim.AdamW and torch.nn.utils.clip_grad_norm_ in double.
struct Reference {
    struct Tensor {
        std::string         name;
        double              rate, weight_decay;
        std::vector<double> w, m, v;
    };
    std::vector<Tensor> tensors;
    int                 t = 0;

    explicit Reference(const Optimizer & optimizer, double rate_0, double rate_1) {
        for (const auto & [name, group] :
             std::vector<std::pair<std::string, int>>{ { "w", 0 }, { "far", 0 }, { "b", 1 }, { "unused", 1 } }) {
            const std::vector<float> values = optimizer.values(name);
            tensors.push_back({ name, group == 0 ? rate_0 : rate_1, group == 0 ? 0.01 : 0.0,
                                std::vector<double>(values.begin(), values.end()), std::vector<double>(values.size()),
                                std::vector<double>(values.size()) });
        }
    }

    double step(const Optimizer & optimizer, double clip, double gradient_scale) {
        double squares = 0.0;
        for (const Tensor & tensor : tensors) {
            for (float g : optimizer.gradient(tensor.name)) {
                squares += std::pow(g / gradient_scale, 2.0);
            }
        }
        const double norm = std::sqrt(squares);
        const double coef = std::min(1.0, clip / (norm + 1e-6)) / gradient_scale;
        t++;
        for (Tensor & tensor : tensors) {
            const std::vector<float> gradient = optimizer.gradient(tensor.name);
            for (size_t i = 0; i < gradient.size(); i++) {
                const double g = gradient[i] * coef;
                tensor.w[i] *= 1.0 - tensor.rate * tensor.weight_decay;
                tensor.m[i]              = 0.9 * tensor.m[i] + 0.1 * g;
                tensor.v[i]              = 0.999 * tensor.v[i] + 0.001 * g * g;
                const double denominator = std::sqrt(tensor.v[i]) / std::sqrt(1.0 - std::pow(0.999, t)) + 1e-8;
                tensor.w[i] -= tensor.rate / (1.0 - std::pow(0.9, t)) * tensor.m[i] / denominator;
            }
        }
        return norm;
    }
};

void check_against(const Optimizer & optimizer, const Reference & reference, double tolerance) {
    for (const Reference::Tensor & tensor : reference.tensors) {
        CAPTURE(tensor.name);
        CHECK(penelope::test::difference(optimizer.values(tensor.name), tensor.w) < tolerance);
    }
}

} // namespace

TEST_CASE("updates are those of AdamW with clipping by the norm of all gradients") {
    for (double clip : { 0.5, 1e9 }) {
        for (float scale : { 1.0f, 4096.0f }) {
            CAPTURE(clip);
            CAPTURE(scale);
            Optimizer optimizer(backend(), kGroups);
            initialize(optimizer);
            Problem   problem(optimizer);
            Reference reference(optimizer, 1e-2, 3e-2);
            for (int i = 0; i < 20; i++) {
                problem.compute(i, scale);
                const double       expected = reference.step(optimizer, clip, scale);
                const UpdateResult report   = optimizer.step({ 1e-2, 3e-2 }, clip, scale);
                CHECK(report.applied);
                CHECK(report.grad_norm == doctest::Approx(expected).epsilon(1e-5));
            }
            CHECK(optimizer.step_count() == 20);
            check_against(optimizer, reference, 2e-6);
        }
    }
}

TEST_CASE("a gradient that is not finite changes nothing") {
    Optimizer optimizer(backend(), kGroups);
    initialize(optimizer);
    Problem problem(optimizer);
    problem.compute(0);
    optimizer.step({ 1e-2, 1e-2 }, 1.0);
    std::vector<std::vector<float>> before;
    for (int group = 0; group < 2; group++) {
        for (auto part : { Optimizer::BufferKind::weights, Optimizer::BufferKind::first_moments,
                           Optimizer::BufferKind::second_moments }) {
            before.push_back(optimizer.read(group, part));
        }
    }
    for (float poison : { NAN, INFINITY }) {
        problem.compute(1, poison);
        const UpdateResult report = optimizer.step({ 1e-2, 1e-2 }, 1.0);
        CHECK_FALSE(report.applied);
        CHECK_FALSE(std::isfinite(report.grad_norm));
        CHECK(optimizer.step_count() == 1);
        size_t i = 0;
        for (int group = 0; group < 2; group++) {
            for (auto part : { Optimizer::BufferKind::weights, Optimizer::BufferKind::first_moments,
                               Optimizer::BufferKind::second_moments }) {
                CHECK(optimizer.read(group, part) == before[i++]);
            }
        }
    }
}

TEST_CASE("a run taken up from its buffers goes on bit by bit") {
    const auto run = [](Optimizer & optimizer, int first, int last) {
        Problem problem(optimizer);
        for (int i = first; i < last; i++) {
            problem.compute(i);
            optimizer.step({ 1e-2, 1e-2 }, 1.0);
        }
    };
    Optimizer whole(backend(), kGroups), part(backend(), kGroups), rest(backend(), kGroups);
    initialize(whole);
    initialize(part);
    run(whole, 0, 6);
    run(part, 0, 3);
    for (int group = 0; group < 2; group++) {
        for (auto buffer : { Optimizer::BufferKind::weights, Optimizer::BufferKind::first_moments,
                             Optimizer::BufferKind::second_moments }) {
            rest.write(group, buffer, part.read(group, buffer));
        }
    }
    rest.set_step_count(part.step_count());
    run(rest, 3, 6);
    for (const char * name : { "w", "far", "b", "unused" }) {
        CHECK(rest.values(name) == whole.values(name));
    }
    CHECK_THROWS_AS(rest.write(0, Optimizer::BufferKind::weights, { 1.0f }), penelope::Error);
}

TEST_CASE("sizes and order") {
    Optimizer optimizer(backend(), kGroups);
    CHECK(optimizer.n_parameters() == 15 + 3000 + 3 + 7);
    CHECK(optimizer.n_groups() == 2);
    CHECK(optimizer.group_name(1) == "vectors");
    CHECK(optimizer.parameter("far")->ne[0] == 1000);
    CHECK(optimizer.values("w") == std::vector<float>(15, 0.0f));
}

TEST_CASE("a group larger than a buffer may be is stepped in parts as it would be whole") {
    Optimizer whole(backend(), kGroups), cut(backend(), kGroups, {}, { 4096 });
    for (Optimizer * optimizer : { &whole, &cut }) {
        initialize(*optimizer);
        Problem problem(*optimizer);
        for (int i = 0; i < 3; i++) {
            problem.compute(i);
            CHECK(optimizer->step({ 1e-2, 1e-3 }, 0.5).applied);
        }
    }
    for (const char * name : { "w", "far", "b", "unused" }) {
        CAPTURE(name);
        CHECK(whole.values(name) == cut.values(name));
    }
    CHECK(cut.n_flat(0) > whole.n_flat(0)); // every part is filled up by itself
    Optimizer copy(backend(), kGroups, {}, { 4096 });
    for (int group = 0; group < 2; group++) {
        copy.write(group, Optimizer::BufferKind::weights, cut.read(group, Optimizer::BufferKind::weights));
    }
    CHECK(copy.values("far") == cut.values("far"));
}

TEST_CASE("a buffer larger than an operation takes is stepped in stretches as it would be whole") {
    Optimizer whole(backend(), kGroups), cut(backend(), kGroups, {}, { 0, 1 });
    REQUIRE(whole.n_flat(0) > 1024);
    double norms[2];
    for (int which = 0; which < 2; which++) {
        Optimizer & optimizer = which ? cut : whole;
        initialize(optimizer);
        Problem problem(optimizer);
        for (int i = 0; i < 3; i++) {
            problem.compute(i);
            norms[which] = optimizer.step({ 1e-2, 1e-3 }, 0.0).grad_norm;
        }
    }
    CHECK(norms[0] == doctest::Approx(norms[1]).epsilon(1e-6));
    for (const char * name : { "w", "far", "b", "unused" }) {
        CAPTURE(name);
        CHECK(whole.values(name) == cut.values(name));
    }
}
