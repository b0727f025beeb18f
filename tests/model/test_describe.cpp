// penelope info: what it says of each kind of file.
#include <doctest/doctest.h>

#include "base/error.h"
#include "convert/describe.h"
#include "support/errors.h"
#include "support/golden.h"

using namespace penelope;
using test::GoldenCase;
using test::says;

TEST_CASE("a backbone") {
    const GoldenCase golden("last");
    const auto       info = describe_file(golden.backbone(), true);
    CHECK(info.json["status"] == "ok");
    CHECK(info.json["kind"] == "backbone");
    CHECK(info.json["architecture"] == "llama");
    CHECK(info.json["type"] == "F32");
    CHECK(info.json["parameters"]["total"] == 286976);
    CHECK(info.json["parameters"]["lora"] == 0);
    CHECK(info.json["memory"]["per_token"] == 2 * 2 * 6 * 32); // K and V, two bytes, 6 layers of 2 heads of 16
    CHECK(info.json["memory"]["weights"] == 286976 * 4 + 8 * 4);
    CHECK(info.json["metadata"]["llama.block_count"] == 6);
    CHECK(info.json["metadata"]["tokenizer.ggml.tokens"]["count"] == 439);
    CHECK(info.json["tensors"].size() == 57);
    CHECK(info.json["tensors"][1]["name"] == "token_embd.weight");
    CHECK(info.json["tensors"][1]["shape"] == OrderedJson{ 64, 439 });
    CHECK(says(info.text, "6 layers, width 64"));
    CHECK(says(info.text, "per token"));
    CHECK(says(info.text, "blk.5.ffn_down.weight [160, 64]"));
    CHECK(!describe_file(golden.backbone(), false).json.contains("tensors"));
}

TEST_CASE("adapters and bundles") {
    const GoldenCase golden("last");
    const auto       sidecar = describe_file(golden.sidecar(), false);
    CHECK(sidecar.json["kind"] == "sidecar");
    CHECK(sidecar.json["sidecar"]["method"] == "penelope");
    CHECK(sidecar.json["sidecar"]["interval"] == OrderedJson{ 4, 6 });
    CHECK(sidecar.json["sidecar"]["layer_applications"] == 14); // 6 + (3 + 1) * 2
    CHECK(sidecar.json["sidecar"]["base"]["vocab_size"] == 439);
    CHECK(sidecar.json["parameters"]["penelope"].get<int>() > 0);
    CHECK(sidecar.json["parameters"]["total"] ==
          sidecar.json["parameters"]["penelope"].get<int>() + sidecar.json["parameters"]["lora"].get<int>());
    CHECK(says(sidecar.text, "layers [4, 6) of 6"));
    CHECK(says(sidecar.text, "K = 3 by default, up to 8"));
    CHECK(says(sidecar.text, "trained for golden"));

    const auto lora = describe_file(golden.lora(), false);
    CHECK(lora.json["kind"] == "lora");
    CHECK(says(lora.text, "alpha 8.0"));
    CHECK(says(lora.text, "attn_q"));
    CHECK(lora.json["lora"]["layers"] == 6);

    ExportOptions options;
    options.as        = "bundle";
    options.in_path   = golden.sidecar();
    options.base_path = golden.backbone();
    options.out_path  = golden.file("bundle.gguf");
    export_sidecar(options);
    const auto bundle = describe_file(options.out_path, false);
    CHECK(bundle.json["kind"] == "bundle");
    CHECK(bundle.json["sidecar"]["k_max"] == 8);
    CHECK(bundle.json["backbone"]["layers"] == 6);

    CHECK_THROWS_AS(describe_file(golden.source("model"), false), Error);
    CHECK_THROWS_AS(describe_file(golden.source("model/config.json"), false), Error);
}
