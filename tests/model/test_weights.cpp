// Where weights lie: in the file's map or in memory of their own, and each of them once.
#include <doctest/doctest.h>

#include "gguf/reader.h"
#include "infer/session.h"
#include "model/backbone.h"
#include "model/weights.h"
#include "support/golden.h"

#include <filesystem>

using namespace penelope;

namespace {

SessionOptions small_session() {
    SessionOptions options;
    options.n_ctx     = 64;
    options.n_threads = 1;
    return options;
}

} // namespace

TEST_CASE("weights read into memory survive a file that shrinks under them") {
    const test::GoldenCase golden("last");
    LoadOptions            options;
    options.base     = golden.file("copy.gguf");
    options.sidecar  = golden.file("sidecar-copy.gguf");
    options.device   = "CPU";
    options.use_mmap = false;
    std::filesystem::copy_file(golden.backbone(), options.base);
    std::filesystem::copy_file(golden.sidecar(), options.sidecar);
    Session         session(Engine::load(options), small_session());
    GenerateOptions generate;
    generate.n_steps    = 3;
    generate.n_predict  = 12;
    const Answer before = session.generate(golden.prompt_ids(0), generate);
    std::filesystem::resize_file(options.base, 100);
    std::filesystem::resize_file(options.sidecar, 100);
    CHECK(session.generate(golden.prompt_ids(0), generate).tokens == before.tokens);
    CHECK(session.generate(golden.prompt_ids(1), generate).tokens == golden.greedy(3, 1));
}

TEST_CASE("a store takes any number of weights") {
    WeightStore       store(find_device("CPU"), false);
    std::vector<Node> nodes;
    for (int i = 0; i < 100000; i++) {
        nodes.push_back(store.add_host("w" + std::to_string(i), { 1 }, { float(i) }));
    }
    store.load();
    store.load(); // nothing is left to do
    CHECK(store.nodes() == nodes);
    for (int i : { 0, 1535, 1536, 65535, 65536, 99999 }) {
        CHECK(get_node(nodes[size_t(i)]) == std::vector<float>{ float(i) });
    }
}

TEST_CASE("a tied head is the embedding itself") {
    const test::GoldenCase golden("last");
    for (bool use_mmap : { true, false }) {
        LoadOptions options;
        options.base      = golden.backbone();
        options.device    = "CPU";
        options.repack    = false;
        options.use_mmap  = use_mmap;
        const auto engine = Engine::load(options);
        CHECK(engine->backbone().head.weight == engine->backbone().embedding);
        size_t n_bytes = 0;
        for (const GgufTensor & tensor : GgufReader::open(golden.backbone()).tensors()) {
            n_bytes += tensor.size;
        }
        CHECK(engine->weight_bytes() == n_bytes);
    }
}
