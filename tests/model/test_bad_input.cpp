// What a user can get wrong between backbone, sidecar and question: one Error each that names what is wrong.
#include <doctest/doctest.h>

#include "arch/config.h"
#include "base/error.h"
#include "gguf/finite.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "infer/session.h"
#include "sidecar/sidecar.h"
#include "support/errors.h"
#include "support/golden.h"

#include <ggml-cpp.h>

#include <cmath>
#include <functional>

using namespace penelope;
using penelope::test::contains;
using penelope::test::error_of;
using penelope::test::GoldenCase;

namespace {

const GoldenCase & golden() {
    static const GoldenCase last("last");
    return last;
}

struct Opened {
    ggml_context_ptr tensors;
    gguf_context_ptr gguf;
};

Opened open_gguf(const std::string & path) {
    ggml_context * tensors = nullptr;
    Opened         file;
    file.gguf.reset(gguf_init_from_file(path.c_str(), { false, &tensors }));
    file.tensors.reset(tensors);
    REQUIRE(file.gguf);
    return file;
}

// A copy of `path` whose keys and values `edit` has changed, without the tensor `left_out`.
std::string edited(const std::string & path, const std::function<void(Opened &)> & edit,
                   const std::string & left_out = "") {
    Opened file = open_gguf(path);
    edit(file);
    const gguf_context_ptr copy(gguf_init_empty());
    gguf_set_kv(copy.get(), file.gguf.get());
    for (ggml_tensor * t = ggml_get_first_tensor(file.tensors.get()); t;
         t               = ggml_get_next_tensor(file.tensors.get(), t)) {
        // The context begins with the tensor that holds all data; it is not one of the file.
        if (t->name != left_out && gguf_find_tensor(file.gguf.get(), t->name) >= 0) {
            gguf_add_tensor(copy.get(), t);
        }
    }
    static int        n_files = 0;
    const std::string target  = golden().file("edited-" + std::to_string(n_files++) + ".gguf");
    REQUIRE(gguf_write_to_file(copy.get(), target.c_str(), false));
    return target;
}

std::string with_nan(const std::string & path, const char * name) {
    return edited(path, [&](Opened & file) {
        ggml_tensor * tensor = ggml_get_tensor(file.tensors.get(), name);
        REQUIRE(tensor);
        REQUIRE(tensor->type == GGML_TYPE_F32);
        static_cast<float *>(tensor->data)[5] = std::nanf("");
    });
}

// What loading says; the answer to a question as well when loading says nothing.
Error answer_error(const std::string & base, const std::string & sidecar) {
    return error_of([&] {
        LoadOptions load;
        load.base    = base;
        load.sidecar = sidecar;
        SessionOptions options;
        options.n_ctx = 128;
        Session(Engine::load(load), options).generate(golden().prompt_ids(0), {});
    });
}

Error sidecar_error(const std::function<void(Opened &)> & edit, const std::string & left_out = "") {
    const Error error = answer_error(golden().backbone(), edited(golden().sidecar(), edit, left_out));
    CHECK(error.kind == ErrorKind::format);
    CHECK(!error.hint.empty());
    return error;
}

void nothing(Opened &) {}

} // namespace

TEST_CASE("an unchanged copy answers") {
    LoadOptions load;
    load.base    = edited(golden().backbone(), nothing);
    load.sidecar = edited(golden().sidecar(), nothing);
    SessionOptions options;
    options.n_ctx = 128;
    CHECK_FALSE(Session(Engine::load(load), options).generate(golden().prompt_ids(0), {}).tokens.empty());
}

TEST_CASE("an interval outside the base") {
    const Error error =
        sidecar_error([](Opened & file) { gguf_set_val_u32(file.gguf.get(), "penelope.interval.end", 7); });
    CHECK(contains(error.message(), "interval [4, 7) does not lie in the 6 layers"));
}

TEST_CASE("a tensor of the sidecar is missing") {
    const Error error = sidecar_error(nothing, "penelope.memory.gru.hidden.bias");
    CHECK(contains(error.message(), "penelope.memory.gru.hidden.bias"));
    CHECK(contains(error.message(), "missing"));
}

TEST_CASE("a tensor of the sidecar has another shape") {
    const Error error = sidecar_error([](Opened & file) {
        ggml_tensor * tensor = ggml_get_tensor(file.tensors.get(), "penelope.readout.anchor"); // [d, q]
        std::swap(tensor->ne[0], tensor->ne[1]);
        tensor->nb[1] = tensor->nb[0] * size_t(tensor->ne[0]);
    });
    CHECK(contains(error.message(), "penelope.readout.anchor"));
    CHECK(contains(error.message(), "[64, 2]"));
    CHECK(contains(error.message(), "[2, 64]"));
}

TEST_CASE("a value that is not finite is found and its tensor named") {
    for (const char * name : { "penelope.time.out.weight", "blk.3.ffn_up.weight.lora_b" }) {
        CAPTURE(name);
        const Error error = answer_error(golden().backbone(), with_nan(golden().sidecar(), name));
        CHECK(error.kind == ErrorKind::format);
        CHECK(contains(error.message(), name));
        CHECK(contains(error.message(), "not finite"));
    }
    // In a backbone it shows in the logits.
    for (const char * name : { "blk.2.ffn_down.weight", "blk.5.attn_q.weight", "output_norm.weight" }) {
        for (const std::string & sidecar : { std::string(), golden().sidecar() }) {
            CAPTURE(name);
            const Error error = answer_error(with_nan(golden().backbone(), name), sidecar);
            CHECK(error.kind == ErrorKind::format);
            CHECK(contains(error.message(), name));
            CHECK(contains(error.message(), "not finite"));
            CHECK(!error.hint.empty());
        }
    }
}

TEST_CASE("an invalid request") {
    LoadOptions load;
    load.base    = golden().backbone();
    load.sidecar = golden().sidecar();
    SessionOptions options;
    options.n_ctx = 128;
    Session         session(Engine::load(load), options);
    GenerateOptions generate;
    generate.n_steps = 9;
    const auto ask   = [&](const std::vector<int32_t> & prompt) {
        const Error error = error_of([&] { session.generate(prompt, generate); });
        CHECK(error.kind == ErrorKind::usage);
        CHECK(!error.hint.empty());
        return error;
    };
    CHECK(contains(ask(golden().prompt_ids(0)).message(), "-K 9: out of range, penelope takes 0 to 8"));
    generate.n_steps = 3;
    CHECK(contains(ask({}).message(), "empty"));
    CHECK(contains(ask(std::vector<int32_t>(118, 5)).message(), "118 tokens and 10 latent rows"));
    CHECK(ask(std::vector<int32_t>(118, 5)).hint == "raise -c to at least 129");
    CHECK(contains(ask(std::vector<int32_t>(600, 5)).hint, "shorten the prompt"));
}

TEST_CASE("a sidecar that needs too much memory for graphs or JSON") {
    SidecarConfig config = read_sidecar_config(GgufReader::open(golden().sidecar()));
    const auto    says   = [&](const std::string & what) {
        const Error error = error_of([&] { check_sidecar_config(config, "x.gguf"); });
        CHECK(error.kind == ErrorKind::format);
        return contains(error.message(), what);
    };
    check_sidecar_config(config, "x.gguf");
    config.train_config = std::string((1 << 20) + 1, ' ');
    CHECK(says("penelope.train.config has"));
    config.train_config.clear();
    config.k_max            = 1024;
    config.base.block_count = 128;
    config.interval_start   = 0;
    config.interval_end     = 64;
    check_sidecar_config(config, "x.gguf");
    config.interval_end = 65;
    CHECK(says("k_max 1024 takes 66560 applications of a layer, at most 65536"));
    config.method = "coconut";
    CHECK(says("k_max 1024 takes 131072 applications"));
}

TEST_CASE("sections of a rotation that are not four") {
    const GoldenCase  hybrid("qwen35");
    const std::string base  = edited(hybrid.backbone(), [](Opened & file) {
        const int32_t sections[] = { 11, 11 };
        gguf_set_arr_data(file.gguf.get(), "qwen35.rope.dimension_sections", GGUF_TYPE_INT32, sections, 2);
    });
    const Error       error = error_of([&] { read_model_config(GgufReader::open(base)); });
    CHECK(contains(error.message(), "qwen35.rope.dimension_sections has 2 entries, expected 4"));
}

TEST_CASE("a LoRA whose scale is no number is not exported") {
    const std::string lora = edited(
        golden().lora(), [](Opened & file) { gguf_set_val_f32(file.gguf.get(), keys::adapter_lora_alpha, INFINITY); });
    ExportOptions options;
    options.as        = "peft";
    options.in_path   = lora;
    options.base_path = golden().backbone();
    options.out_path  = golden().file("peft");
    CHECK(contains(error_of([&] { export_sidecar(options); }).message(), "adapter.lora.alpha is not a number"));
}
