// The packed products of the CPU: every kernel against its plain C++ twin to the bit, the twin against sums in double
// precision, and the graph's node against ggml's product.
#include "cpu/packed_weight.h"
#include "graph/nodes.h"
#include "graph/packed_product.h"

#include <doctest/doctest.h>
#include <ggml-cpu.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace penelope;

namespace {

constexpr ggml_type kTypes[] = { GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0,
                                 GGML_TYPE_Q5_1, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K };

int64_t n_groups(int64_t n_out) {
    return (n_out + cpu::kGroupRows - 1) / cpu::kGroupRows;
}

struct Weight {
    const cpu::PackedFormat * format;
    int64_t                   n_in, n_out;
    std::vector<float>        values; // as the type rounds them
    std::vector<uint8_t>      file;   // as a GGUF file has them
    std::vector<uint8_t>      packed;
};

std::vector<float> normal_values(int64_t n, float size, unsigned seed) {
    std::vector<float>              x(static_cast<size_t>(n));
    std::mt19937                    random(seed);
    std::normal_distribution<float> normal(0.0f, size);
    std::generate(x.begin(), x.end(), [&] { return normal(random); });
    return x;
}

void pack(Weight & w) {
    w.packed.assign(cpu::packed_bytes(*w.format, w.n_in, w.n_out), 0xee);
    cpu::pack_groups(*w.format, w.file.data(), w.n_in, w.n_out, 0, n_groups(w.n_out), w.packed.data());
}

Weight make_weight(ggml_type type, int64_t n_in, int64_t n_out, unsigned seed) {
    Weight w{ cpu::find_packed_format(type), n_in, n_out, normal_values(n_in * n_out, 0.3f, seed), {}, {} };
    REQUIRE(w.format);
    w.file.resize(ggml_row_size(type, n_in) * size_t(n_out));
    ggml_quantize_chunk(type, w.values.data(), w.file.data(), 0, n_out, n_in, nullptr);
    ggml_get_type_traits(type)->to_float(w.file.data(), w.values.data(), n_in * n_out);
    pack(w);
    return w;
}

std::vector<uint8_t> quantize(const cpu::PackedKernels & kernels, const std::vector<float> & x, int64_t n_in) {
    const size_t         size = cpu::quantized_row_bytes(n_in);
    const int64_t        n    = int64_t(x.size()) / n_in;
    std::vector<uint8_t> rows(size * size_t(n));
    for (int64_t i = 0; i < n; i++) {
        kernels.quantize_row(x.data() + i * n_in, n_in, rows.data() + size_t(i) * size);
    }
    return rows;
}

// y [n_out, n_columns], computed as so many threads would.
std::vector<float> multiply(const cpu::PackedKernels & kernels, const Weight & w, const std::vector<uint8_t> & x,
                            int n_threads = 1) {
    const int64_t      n = int64_t(x.size() / cpu::quantized_row_bytes(w.n_in)), groups = n_groups(w.n_out);
    std::vector<float> y(size_t(w.n_out * n) + 1, -7.0f); // one more: nothing may be written behind the end
    for (int i = 0; i < n_threads; i++) {
        kernels.multiply({ w.format, w.packed.data(), w.n_in, w.n_out, x.data(), n, y.data(), groups * i / n_threads,
                           groups * (i + 1) / n_threads });
    }
    CHECK(y.back() == -7.0f);
    y.pop_back();
    return y;
}

bool same_bits(const std::vector<float> & a, const std::vector<float> & b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Weights of one type in memory of the CPU, plain and packed.
struct PackedPair {
    ggml_context_ptr        ctx{ ggml_init({ 4 * ggml_tensor_overhead(), nullptr, true }) };
    ggml_backend_buffer_ptr plain_buffer, packed_buffer;
    Node                    plain, packed;

    explicit PackedPair(const Weight & w) {
        plain  = ggml_new_tensor_2d(ctx.get(), w.format->type, w.n_in, w.n_out);
        packed = ggml_new_tensor_2d(ctx.get(), w.format->type, w.n_in, w.n_out);
        plain_buffer.reset(ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), w.file.size()));
        packed_buffer.reset(ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(),
                                                           std::max(packed_size(packed), ggml_nbytes(packed))));
        REQUIRE(ggml_backend_tensor_alloc(plain_buffer.get(), plain,
                                          ggml_backend_buffer_get_base(plain_buffer.get())) == GGML_STATUS_SUCCESS);
        ggml_backend_tensor_set(plain, w.file.data(), 0, w.file.size());
        REQUIRE(ggml_backend_tensor_alloc(packed_buffer.get(), packed,
                                          ggml_backend_buffer_get_base(packed_buffer.get())) == GGML_STATUS_SUCCESS);
        pack_weights({ { packed, w.file.data() } });
    }
};

} // namespace

TEST_CASE("the plain product is the sum of the products of its quantized numbers") {
    for (const ggml_type type : kTypes) {
        CAPTURE(std::string(ggml_type_name(type)));
        const Weight               w     = make_weight(type, 512, 37, 1);
        const std::vector<float>   x     = normal_values(512 * 3, 2.0f, 2);
        const std::vector<uint8_t> rows  = quantize(cpu::reference_packed_kernels(), x, 512);
        const std::vector<float>   y     = multiply(cpu::reference_packed_kernels(), w, rows);
        double                     worst = 0.0;
        for (int64_t c = 0; c < 3; c++) {
            const uint8_t * row = rows.data() + size_t(c) * cpu::quantized_row_bytes(512);
            for (int64_t r = 0; r < 37; r++) {
                double sum = 0.0, size = 0.0;
                for (int64_t i = 0; i < 512; i++) {
                    cpu::BlockFactors factors;
                    std::memcpy(&factors, row + 512 + size_t(i / 32) * sizeof(factors), sizeof(factors));
                    const double product =
                        double(w.values[size_t(r * 512 + i)]) * double(int8_t(row[i])) * double(factors.scale);
                    sum += product;
                    size += std::fabs(product);
                }
                worst = std::max(worst, std::fabs(double(y[size_t(c * 37 + r)]) - sum) / size);
            }
        }
        CHECK(worst < 1e-6);
    }
}

TEST_CASE("kernels of the processor give the bits of the plain ones") {
    const cpu::PackedKernels * kernels = cpu::packed_kernels();
    if (!kernels) {
        MESSAGE("this processor has no packed kernels");
        return;
    }
    for (const ggml_type type : kTypes) {
        CAPTURE(std::string(ggml_type_name(type)));
        const int64_t unit = cpu::find_packed_format(type)->block_values;
        for (const int64_t n_in : { unit, 3 * unit, 2 * unit }) {
            for (const int64_t n_out : { 16, 17, 31, 64, 90 }) {
                const Weight w = make_weight(type, n_in, n_out, unsigned(n_in + n_out));
                for (const int64_t n_columns : { 1, 2, 3, 5, 8, 15, 16, 17, 33 }) {
                    const std::vector<float>   x    = normal_values(n_in * n_columns, 3.0f, unsigned(n_columns));
                    const std::vector<uint8_t> rows = quantize(*kernels, x, n_in);
                    CHECK(rows == quantize(cpu::reference_packed_kernels(), x, n_in));
                    const std::vector<float> y = multiply(cpu::reference_packed_kernels(), w, rows);
                    for (const int n_threads : { 1, 2, 3, 7 }) {
                        CHECK(same_bits(y, multiply(*kernels, w, rows, n_threads)));
                    }
                }
            }
        }
    }
}

TEST_CASE("all widths of columns give the bits of a column alone") {
    const cpu::PackedKernels & kernels =
        cpu::packed_kernels() ? *cpu::packed_kernels() : cpu::reference_packed_kernels();
    for (const ggml_type type : kTypes) {
        CAPTURE(std::string(ggml_type_name(type)));
        const Weight               w    = make_weight(type, 256, 40, 5);
        const std::vector<uint8_t> rows = quantize(kernels, normal_values(256 * 23, 3.0f, 6), 256);
        const size_t               size = cpu::quantized_row_bytes(256);
        for (size_t n = 1; n <= 23; n++) {
            const std::vector<float> some = multiply(kernels, w, { rows.begin(), rows.begin() + long(n * size) });
            const std::vector<float> last =
                multiply(kernels, w, { rows.begin() + long((n - 1) * size), rows.begin() + long(n * size) });
            CHECK(same_bits(last, { some.end() - 40, some.end() }));
        }
    }
}

TEST_CASE("extreme numbers") {
    const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<const cpu::PackedKernels *> all = { &cpu::reference_packed_kernels() };
    if (cpu::packed_kernels()) {
        all.push_back(cpu::packed_kernels());
    }
    for (const ggml_type type : kTypes) {
        CAPTURE(std::string(ggml_type_name(type)));
        Weight       w = make_weight(type, 512, 16, 7);
        std::mt19937 random(8);
        // Every bit of the quantized numbers set or not; scales stay as they are, so that sums stay finite.
        const size_t last_scale = type == GGML_TYPE_Q6_K ? 18 : 0; // Q6_K has its scales at the end of a block
        const size_t block = ggml_type_size(type), first = type == GGML_TYPE_Q6_K ? 0 : type == GGML_TYPE_Q8_0 ? 2 : 16;
        for (size_t b = 0; block > 24 && b < w.file.size(); b += block) {
            for (size_t i = first; i < block - last_scale; i++) {
                w.file[b + i] = random() % 3 == 0 ? 0xff : random() % 2 == 0 ? 0x80 : 0;
            }
        }
        pack(w);
        for (const float value : { 0.0f, -0.0f, 1e-38f, 1e-34f, 3.0f, -1e25f, inf, -inf, nan }) {
            CAPTURE(value);
            std::vector<float> x(512, value), before;
            for (size_t i = 0; i < 512; i += 5) {
                x[i] = -x[i];
            }
            for (const cpu::PackedKernels * kernels : all) {
                const std::vector<float> y = multiply(*kernels, w, quantize(*kernels, x, 512));
                for (const float result : y) {
                    CHECK(std::isnan(result) == !std::isfinite(value));
                }
                CHECK((before.empty() || !std::isfinite(value) || same_bits(before, y)));
                before = y;
            }
        }
    }
}

TEST_CASE("the node multiplies at least as exactly as ggml's product") {
    const Backend backend(find_device("CPU"), 2);
    for (const ggml_type type : kTypes) {
        CAPTURE(std::string(ggml_type_name(type)));
        const Weight w = make_weight(type, 256, 100, 9);
        if (!can_pack(type, std::array<int64_t, 2>{ 256, 100 }.data())) {
            MESSAGE("this processor has no packed kernels");
            return;
        }
        const PackedPair         pair(w);
        const std::vector<float> x = normal_values(256 * 12, 1.0f, 10);
        CHECK(is_packed(pair.packed));
        CHECK_FALSE(is_packed(pair.plain));

        const auto run = [&](Node weight, bool in_three_dimensions) {
            Graph g(nullptr, &backend);
            Node  in = g.input("x", GGML_TYPE_F32, 256, 12);
            Node  y  = matrix_product(g, weight, in_three_dimensions ? ggml_reshape_3d(g.ctx(), in, 256, 4, 3) : in);
            Node  z  = matrix_product(g, weight, in); // shares the quantized input
            g.output(y);
            g.output(z);
            g.allocate(backend);
            g.set(in, x);
            g.compute(backend);
            CHECK(same_bits(get_node(y), get_node(z)));
            return get_node(y);
        };
        const std::vector<float> ours = run(pair.packed, false), theirs = run(pair.plain, false);
        CHECK(same_bits(ours, run(pair.packed, true)));
        double our_error = 0.0, their_error = 0.0, size = 0.0;
        for (size_t c = 0; c < 12; c++) {
            for (size_t r = 0; r < 100; r++) {
                double exact = 0.0;
                for (size_t i = 0; i < 256; i++) {
                    exact += double(w.values[r * 256 + i]) * double(x[c * 256 + i]);
                }
                our_error += std::pow(double(ours[c * 100 + r]) - exact, 2);
                their_error += std::pow(double(theirs[c * 100 + r]) - exact, 2);
                size += exact * exact;
            }
        }
        CHECK(std::sqrt(our_error / size) < 0.006);
        CHECK(our_error < 1.1 * their_error); // ggml rounds x in blocks of 32 or 256
    }
}

TEST_CASE("what has no packed layout stays with ggml") {
    CHECK_FALSE(can_pack(GGML_TYPE_F32, std::array<int64_t, 2>{ 256, 256 }.data()));
    CHECK_FALSE(can_pack(GGML_TYPE_Q6_K, std::array<int64_t, 2>{ 288, 256 }.data()));
    CHECK_FALSE(can_pack(GGML_TYPE_Q8_0, std::array<int64_t, 2>{ 256, 15 }.data()));
}
