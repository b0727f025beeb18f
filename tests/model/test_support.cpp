// What is said of a model this program cannot run, and the table of what it can.
#include <doctest/doctest.h>

#include "arch/architecture.h"
#include "base/format.h"
#include "convert/describe.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "infer/engine.h"
#include "model/support.h"
#include "support/errors.h"
#include "support/golden.h"
#include "support/temp_dir.h"
#include "text/tokenizer_support.h"

#include <fstream>
#include <functional>
#include <sstream>

using namespace penelope;
using penelope::test::contains;
using penelope::test::error_of;
using penelope::test::TempDir;

namespace {

// The backbone of a golden case with some keys changed, and a tensor of integers beside the others.
std::string changed(const TempDir & dir, const std::function<void(GgufWriter &)> & change, bool integers = false) {
    const test::GoldenCase golden("last");
    const GgufReader       base = GgufReader::open(golden.backbone());
    GgufWriter             writer(dir.file("changed.gguf"), true);
    writer.copy_keys(base);
    change(writer);
    for (const GgufTensor & tensor : base.tensors()) {
        writer.add_tensor(tensor.name, tensor.type, { tensor.ne, tensor.ne + tensor.n_dims });
    }
    if (integers) {
        writer.add_tensor("counts", GGML_TYPE_I32, { 4 });
    }
    writer.begin_data();
    for (const GgufTensor & tensor : base.tensors()) {
        writer.write_tensor(tensor.name, tensor.data, tensor.size);
    }
    if (integers) {
        writer.write_tensor("counts", std::vector<int32_t>(4).data(), 16);
    }
    writer.finish();
    return dir.file("changed.gguf");
}

std::string run_error(const std::string & path) {
    LoadOptions options;
    options.base      = path;
    const Error error = error_of([&] { Engine::load(options); });
    CHECK(error.kind == ErrorKind::unsupported);
    return error.message() + "\n" + error.hint;
}

std::string info_text(const std::string & path) {
    return describe_file(path, false).text;
}

} // namespace

TEST_CASE("run and info say the same, all at once") {
    const TempDir     dir;
    const std::string path = changed(
        dir,
        [](GgufWriter & writer) {
            writer.set_str("general.architecture", "mamba");
            writer.set_str("tokenizer.ggml.model", "bert");
        },
        true);
    const std::string what = "not supported: architecture 'mamba', tokenizer 'bert', type i32 of tensor 'counts'";
    CHECK(contains(run_error(path), what));
    CHECK(contains(run_error(path), "supported are architectures: " + architecture_names() + "; tokenizers: gpt2, "));
    CHECK(contains(info_text(path), what));
    CHECK(contains(info_text(path), "supported are architectures: " + architecture_names()));
}

TEST_CASE("a pre-tokenizer that is not known") {
    const TempDir     dir;
    const std::string path =
        changed(dir, [](GgufWriter & writer) { writer.set_str("tokenizer.ggml.pre", "unheard-of"); });
    CHECK(contains(run_error(path), "not supported: pre-tokenizer 'unheard-of'"));
    CHECK(contains(run_error(path), "llama-bpe"));
    CHECK(contains(info_text(path), "pre-tokenizer 'unheard-of'"));
}

TEST_CASE("a model that is supported") {
    CHECK(!find_unsupported(GgufReader::open(test::GoldenCase("last").backbone())));
}

TEST_CASE("the table in docs/using.md lists the architectures and tokenizers of the registry") {
    std::ifstream file(PENELOPE_TEST_DIR "/../docs/using.md");
    std::string   listed_architectures, listed_models, listed_pre;
    for (std::string line; std::getline(file, line);) {
        const auto cell_after = [&](const std::string & label) {
            return line.compare(0, label.size(), label) == 0 ? line.substr(label.size()) : "";
        };
        listed_architectures += cell_after("| `general.architecture` |");
        listed_models += cell_after("| `tokenizer.ggml.model` |");
        listed_pre += cell_after("| `tokenizer.ggml.pre` |");
    }
    // Names in backticks, in the order of the page.
    const auto names_in = [](const std::string & cell) {
        std::vector<std::string> names;
        const auto               parts = split(cell, '`');
        for (size_t i = 1; i < parts.size(); i += 2) {
            names.push_back(parts[i]);
        }
        return join(names, ", ");
    };
    CHECK(names_in(listed_architectures) == architecture_names());
    CHECK(names_in(listed_models) == join(tokenizer_models(), ", "));
    CHECK(names_in(listed_pre) == join(pre_tokenizer_names(), ", "));
}
