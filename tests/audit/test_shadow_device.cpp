// The shadow of a device allocates nothing real, answers builders as the device does, and hears every refusal of a
// graph.
#include <doctest/doctest.h>

#include "graph/graph.h"
#include "infer/session.h"
#include "shadow_device.h"
#include "support/temp_dir.h"
#include "train/random_backbone.h"

using namespace penelope;
using namespace penelope::audit;

namespace {

OpSupport *         answers = nullptr;
const std::string & shadow() {
    static const std::string name = add_shadow(find_device("CPU"), answers);
    return name;
}

} // namespace

TEST_CASE("a graph the device runs is counted and not refused") {
    const Backend backend(find_device(shadow()), 1);
    OpSupport     heard;
    answers = &heard;
    Graph graph(nullptr, &backend);
    Node  a = graph.input("a", GGML_TYPE_F32, 8, 4);
    Node  b = graph.input("b", GGML_TYPE_F32, 8, 3);
    graph.output(ggml_sqr(graph.ctx(), ggml_mul_mat(graph.ctx(), a, b)));
    graph.allocate(backend);
    graph.compute(backend);
    CHECK(heard.n_graphs == 1);
    CHECK(heard.operations.count("MUL_MAT") == 1);
    CHECK(heard.operations.count("SQR") == 1);
    CHECK(heard.refused.empty());
}

TEST_CASE("every node the device does not run is named with its types and shapes") {
    const Backend backend(find_device(shadow()), 1);
    OpSupport     heard;
    answers = &heard;
    Graph graph(nullptr, &backend);
    Node  a       = graph.input("a", GGML_TYPE_F32, 8, 4);
    Node  half    = graph.input("half", GGML_TYPE_F16, 8, 3);
    Node  product = ggml_mul_mat(graph.ctx(), a, half); // the CPU multiplies F32 with F32 alone
    CHECK_FALSE(graph.supports(product));
    CHECK(graph.supports(ggml_sqr(graph.ctx(), a)));
    graph.output(graph.named(product, "first"));
    graph.output(
        graph.named(ggml_mul_mat(graph.ctx(), a, ggml_view_2d(graph.ctx(), half, 8, 2, half->nb[1], 0)), "second"));
    graph.allocate(backend);
    graph.compute(backend);
    REQUIRE(heard.refused.size() == 2);
    CHECK(heard.refused.begin()->first == "not run: MUL_MAT f32[4,2] from f32[8,4] f16[8,2], node second");
    CHECK(heard.refused.rbegin()->first == "not run: MUL_MAT f32[4,3] from f32[8,4] f16[8,3], node first");
}

TEST_CASE("memory costs nothing until it is touched, and reads as zeros") {
    OpSupport heard;
    answers = &heard;
    const Backend                 backend(find_device(shadow()), 1);
    const ggml_backend_buffer_ptr huge(ggml_backend_buft_alloc_buffer(backend.buffer_type(), size_t(1) << 36));
    REQUIRE(huge);
    const ggml_context_ptr ctx = new_tensor_context(1);
    Node                   row = ggml_new_tensor_1d(ctx.get(), GGML_TYPE_F32, 4);
    ggml_backend_tensor_alloc(huge.get(), row, ggml_backend_buffer_get_base(huge.get()));
    set_node(row, std::vector<float>{ 1, 2, 3, 4 });
    CHECK(get_node(row) == std::vector<float>(4, 0.0f));
}

TEST_CASE("a lost device is an error, and clearing the cache afterwards does not abort") {
    OpSupport heard;
    answers        = &heard;
    DeviceInfo gpu = find_device("CPU");
    gpu.is_cpu     = false;
    const test::TempDir dir;
    const std::string   shape =
        dir.write("shape.toml", "name = \"tiny\"\nlayers = 1\nwidth = 32\nheads = 1\nffn = 32\ncontext = 64\n");
    write_random_backbone(read_backbone_shape(shape), 1, dir.file("tiny.gguf"));
    LoadOptions load;
    load.base   = dir.file("tiny.gguf");
    load.device = add_shadow(gpu, answers);
    Session         session(Engine::load(load), {});
    GenerateOptions generate;
    generate.n_predict = 2;
    session.generate({ 1, 2, 3 }, generate);
    REQUIRE(heard.n_graphs > 0);
    heard.is_lost = true;
    for (int again = 0; again < 2; again++) {
        try {
            session.generate({ 1, 2, 3 }, generate);
            FAIL("the device is gone");
        } catch (const Error & error) {
            CHECK(error.kind == ErrorKind::device);
            CHECK(error.message().find("device lost") != std::string::npos);
        }
    }
}
