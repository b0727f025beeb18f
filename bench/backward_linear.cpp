// Which type should the transposes of frozen weights be kept in? Times dx = W^T dy for the linear layers of a small
// Llama and measures its error against double precision for gradients of several sizes.
//
//   backward_linear [threads] [repetitions]
//
// With one thread the time is that of the processor, so that other programs on the machine matter little; with more it
// is that of the clock. The best repetition counts.
#include "base/rng.h"
#include "graph/graph.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace {

using namespace penelope;

constexpr ggml_type kTypes[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0 };

struct Shape {
    int64_t n_in, n_out; // of the layer; its transpose is [n_out, n_in]
};
constexpr Shape kShapes[] = { { 576, 1536 }, { 1536, 576 }, { 576, 576 }, { 576, 192 } };

double now(bool of_thread) {
    timespec time{};
    clock_gettime(of_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

std::vector<float> normal_values(int64_t n, uint64_t stream, double spread) {
    Rng                rng(1, stream);
    std::vector<float> values(static_cast<size_t>(n));
    for (float & value : values) {
        value = float(spread * rng.normal());
    }
    return values;
}

void fill(Node node, const std::vector<float> & values) {
    if (node->type == GGML_TYPE_F32) {
        set_node(node, values);
        return;
    }
    std::vector<char> bytes(ggml_nbytes(node));
    ggml_quantize_chunk(node->type, values.data(), bytes.data(), 0, node->ne[1], node->ne[0], nullptr);
    set_node(node, bytes);
}

// One product dx [n_in, rows] = W^T dy.
class Product {
  public:
    Product(const Backend & backend, ggml_type type, Shape shape, int64_t rows) : backend_(backend) {
        weight_ = graph_.input("transposed", type, shape.n_out, shape.n_in);
        dy_     = graph_.input("dy", GGML_TYPE_F32, shape.n_out, rows);
        dx_     = ggml_mul_mat(graph_.ctx(), weight_, dy_);
        graph_.output(dx_);
        graph_.allocate(backend);
    }

    std::vector<float> run(const std::vector<float> & weight, const std::vector<float> & dy) {
        fill(weight_, weight);
        fill(dy_, dy);
        graph_.compute(backend_);
        return get_node(dx_);
    }

    double seconds() {
        const bool   of_thread = backend_.n_threads() == 1;
        const double start     = now(of_thread);
        graph_.compute(backend_);
        return now(of_thread) - start;
    }

  private:
    const Backend & backend_;
    Graph           graph_;
    Node            weight_, dy_, dx_;
};

void print_times(const Backend & backend, int64_t rows, int repetitions) {
    std::printf("\n%d rows, %d thread(s): ms and GFLOP/s\n\n| layer |", int(rows), backend.n_threads());
    for (ggml_type type : kTypes) {
        std::printf(" %s |", ggml_type_name(type));
    }
    std::printf("\n|---|---|---|---|---|\n");
    for (const Shape & shape : kShapes) {
        std::printf("| %d -> %d |", int(shape.n_in), int(shape.n_out));
        for (ggml_type type : kTypes) {
            Product product(backend, type, shape, rows);
            product.run(normal_values(shape.n_in * shape.n_out, 1, 0.05), normal_values(shape.n_out * rows, 2, 1.0));
            double best = INFINITY;
            for (int i = 0; i < repetitions; i++) {
                best = std::min(best, product.seconds());
            }
            std::printf(" %.2f (%.0f) |", best * 1e3, 2e-9 * double(shape.n_in * shape.n_out * rows) / best);
        }
        std::printf("\n");
    }
}

// Root mean square of the error relative to that of dx. Gradients within a tensor differ a lot in size, so dy is drawn
// with a factor e^(2 n) per row.
double error_of(const Backend & backend, ggml_type type, double size) {
    const Shape        shape  = { 576, 1536 };
    const int64_t      rows   = 32;
    std::vector<float> weight = normal_values(shape.n_in * shape.n_out, 1, 0.05);
    std::vector<float> dy     = normal_values(shape.n_out * rows, 2, size);
    std::vector<float> spread = normal_values(rows, 3, 2.0);
    for (size_t i = 0; i < dy.size(); i++) {
        dy[i] *= std::exp(spread[i / size_t(shape.n_out)]);
    }
    const std::vector<float> dx      = Product(backend, type, shape, rows).run(weight, dy);
    double                   squares = 0.0, errors = 0.0;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < shape.n_in; i++) {
            double sum = 0.0;
            for (int64_t j = 0; j < shape.n_out; j++) {
                sum += double(weight[size_t(i * shape.n_out + j)]) * dy[size_t(row * shape.n_out + j)];
            }
            squares += sum * sum;
            errors += std::pow(sum - dx[size_t(row * shape.n_in + i)], 2.0);
        }
    }
    return std::sqrt(errors / squares);
}

void print_errors(const Backend & backend) {
    const double sizes[] = { 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7 };
    std::printf("\nRelative error by the size of dy (weight rounded to the type as well)\n\n| type |");
    for (double size : sizes) {
        std::printf(" %.0e |", size);
    }
    std::printf("\n|---|---|---|---|---|---|---|\n");
    for (ggml_type type : kTypes) {
        std::printf("| %s |", ggml_type_name(type));
        for (double size : sizes) {
            std::printf(" %.1e |", error_of(backend, type, size));
        }
        std::printf("\n");
    }
}

} // namespace

int main(int argc, char ** argv) {
    const int     n_threads   = argc > 1 ? std::atoi(argv[1]) : 1;
    const int     repetitions = argc > 2 ? std::atoi(argv[2]) : 20;
    const Backend backend(find_device("CPU"), n_threads);
    std::printf("%s\n", backend.device().description.c_str());
    for (int64_t rows : { 32, 128, 512 }) {
        print_times(backend, rows, repetitions);
    }
    print_errors(backend);
    return 0;
}
