// A backbone made from nothing: its shape file and the GGUF file that comes of it.
#include "gguf/reader.h"
#include "model/load.h"
#include "support/errors.h"
#include "support/temp_dir.h"
#include "text/tokenizer.h"
#include "train/random_backbone.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace penelope;
using penelope::test::contains;
using penelope::test::error_of;
using penelope::test::TempDir;

namespace {

const std::string kShape =
    "name = \"small\"\nlayers = 3\nwidth = 48\nheads = 4\nkv-heads = 2\nffn = 96\ncontext = 128\n";

std::string refusal(const std::string & text) {
    const TempDir dir;
    return error_of([&] { read_backbone_shape(dir.write("shape.toml", text)); }).message();
}

} // namespace

TEST_CASE("the file is a whole backbone with its vocabulary") {
    const TempDir        dir;
    const RandomBackbone shape = read_backbone_shape(dir.write("shape.toml", kShape));
    write_random_backbone(shape, 5, dir.file("a.gguf"));
    const auto        file   = std::make_shared<const GgufReader>(GgufReader::open(dir.file("a.gguf")));
    const ModelConfig config = read_model_config(*file);
    CHECK(config.n_layer == 3);
    CHECK(config.n_embd == 48);
    CHECK(config.head_dim == 12);
    CHECK(config.n_head_kv == 2);
    CHECK(config.n_vocab == 258);
    CHECK(config.n_ctx_train == 128);
    CHECK(config.name == "small");
    CHECK(Tokenizer::from_gguf(*file).encode("Hi", { true, false }) == std::vector<int32_t>{ 256, 'H', 'i' });
    WeightStore store(find_device("CPU"), false);
    load_backbone(file, {}, store);
    CHECK(!file->find_tensor("output.weight"));

    // Standard deviations: 1 / sqrt(n_in), divided by sqrt(2 * 3) for what writes into the residual stream.
    const auto deviation = [&](const char * name) {
        double     sum    = 0;
        const auto values = read_f32(*file, *file->find_tensor(name));
        for (float value : values) {
            sum += double(value) * value;
        }
        return std::sqrt(sum / double(values.size()));
    };
    CHECK(deviation("token_embd.weight") * std::sqrt(48.0) == doctest::Approx(1).epsilon(0.015));
    CHECK(deviation("blk.1.ffn_up.weight") * std::sqrt(48.0) == doctest::Approx(1).epsilon(0.025));
    CHECK(deviation("blk.2.ffn_down.weight") * std::sqrt(96.0 * 6.0) == doctest::Approx(1).epsilon(0.025));
    CHECK(deviation("blk.0.attn_norm.weight") == 1.0);
}

TEST_CASE("the seed decides the weights") {
    const TempDir        dir;
    const RandomBackbone shape = read_backbone_shape(dir.write("shape.toml", kShape + "tied = false\n"));
    write_random_backbone(shape, 5, dir.file("a.gguf"));
    write_random_backbone(shape, 5, dir.file("b.gguf"));
    write_random_backbone(shape, 6, dir.file("c.gguf"));
    CHECK(test::read_bytes(dir.file("a.gguf")) == test::read_bytes(dir.file("b.gguf")));
    CHECK(test::read_bytes(dir.file("a.gguf")) != test::read_bytes(dir.file("c.gguf")));
    CHECK(GgufReader::open(dir.file("a.gguf")).find_tensor("output.weight"));
}

TEST_CASE("a shape file that makes no sense is refused by key") {
    CHECK(contains(refusal("layers = 3\n"), "name"));
    CHECK(contains(refusal(kShape + "depth = 3\n"), "'depth'"));
    CHECK(contains(refusal("name = \"x\"\nlayers = 0\nwidth = 48\nheads = 4\nffn = 96\ncontext = 128\n"), "layers"));
    CHECK(contains(refusal("name = \"x\"\nlayers = 1\nwidth = 50\nheads = 4\nffn = 96\ncontext = 128\n"), "heads"));
    CHECK(contains(refusal("name = \"x\"\nlayers = 1\nwidth = 48\nheads = 4\nkv-heads = 3\nffn = 96\ncontext = 128\n"),
                   "kv-heads"));
    CHECK(contains(refusal("name = \"x\"\nlayers = 1.5\nwidth = 48\nheads = 4\nffn = 96\ncontext = 128\n"), "layers"));
    CHECK(contains(refusal("name ="), "line 1"));
}

TEST_CASE("lookup heads need room and leave every other key as it was") {
    const TempDir dir;
    const auto    shape = [&](const std::string & more) {
        return read_backbone_shape(dir.write("shape.toml", kShape + more));
    };
    CHECK(shape("lookup-heads = true\n").lookup_heads);
    CHECK_FALSE(shape("").lookup_heads);
    const std::string flat =
        "name = \"one\"\nlayers = 1\nwidth = 48\nheads = 4\nffn = 96\ncontext = 128\nlookup-heads = true\n";
    CHECK(contains(refusal(flat), "lookup-heads is true, expected false: they need two layers"));
    const std::string wide =
        "name = \"one\"\nlayers = 2\nwidth = 32\nheads = 1\nffn = 96\ncontext = 128\nlookup-heads = true\n";
    CHECK(contains(refusal(wide), "heads of 8 to two thirds of the width"));
}
