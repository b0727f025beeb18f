#include "train/random_backbone.h"

#include "base/error.h"
#include "base/format.h"
#include "base/rng.h"
#include "base/shape.h"
#include "base/toml_text.h"
#include "convert/metadata.h"
#include "gguf/keys.h"
#include "gguf/writer.h"
#include "model/backbone.h"
#include "task/example_format.h"
#include "task/target_text.h"
#include "text/learn_bpe.h"
#include "train/lookup_heads.h"
#include "train/training_data.h"

#include <cmath>
#include <optional>
#include <set>
#include <sstream>

namespace penelope {

namespace {

constexpr float kRmsEps = 1e-5f;

// Standard deviation 1 / sqrt(n_in), so that outputs have unit size at any width. The usual constant 0.02 suits wide
// models; a narrow one then needs four times as many updates to learn to copy. Weights that write to the residual
// stream are divided by sqrt(2 n_layer), the number of such writes.
double init_stddev(const TensorSpec & tensor, const RandomBackbone & shape) {
    const double        embedding = tensor.gguf == "token_embd.weight" ? shape.embedding_scale : 1.0;
    const ModelConfig & c         = shape.config;
    return embedding * (tensor.writes_residual ? 1.0 / std::sqrt(2.0 * c.n_layer) : 1.0) /
           std::sqrt(double(tensor.ne[0]));
}

std::vector<TensorSpec> tensors_to_init(const ModelConfig & c) {
    std::vector<TensorSpec> tensors;
    for (TensorSpec & tensor : tensors_of(c)) {
        if (!tensor.is_optional || (tensor.gguf == "output.weight" && !c.tied)) {
            tensors.push_back(std::move(tensor));
        }
    }
    return tensors;
}

// TOML table that reports keys nobody read.
class ShapeTable {
  public:
    explicit ShapeTable(const std::string & path) : path_(path), table_(parse_toml(read_toml_text(path), path)) {}

    int integer(const char * key, std::optional<int> fallback, int low, int high) {
        const toml::node * node = take(key);
        if (!node && fallback) {
            return *fallback;
        }
        const auto value = node ? node->value_exact<int64_t>() : std::nullopt;
        if (!value || *value < low || *value > high) {
            fail(key, "an integer from " + std::to_string(low) + " to " + std::to_string(high));
        }
        return int(*value);
    }

    double number(const char * key, double fallback, double low, double high) {
        const toml::node * node  = take(key);
        const auto         value = node ? node->value<double>() : std::optional<double>(fallback);
        if (!value || !(*value >= low && *value <= high)) {
            fail(key, "a number from " + std::to_string(low) + " to " + std::to_string(high));
        }
        return *value;
    }

    bool flag(const char * key, bool fallback) {
        const toml::node * node  = take(key);
        const auto         value = node ? node->value_exact<bool>() : std::optional<bool>(fallback);
        if (!value) {
            fail(key, "true or false");
        }
        return *value;
    }

    std::string text(const char * key) {
        const toml::node * node  = take(key);
        const auto         value = node ? node->value_exact<std::string>() : std::nullopt;
        if (!value || value->empty()) {
            fail(key, "a string that is not empty");
        }
        return *value;
    }

    void require_all_used() const {
        for (const auto & [key, node] : table_) {
            if (!used_.count(std::string(key.str()))) {
                throw Error(ErrorKind::format, path_ + ": unknown key " + in_quotes(key.str()),
                            "known keys: " + join(std::vector<std::string>(used_.begin(), used_.end()), ", "));
            }
        }
    }

    [[noreturn]] void fail(const std::string & key, const std::string & expected) const {
        const toml::node * node = table_.get(key);
        if (!node) {
            throw Error(ErrorKind::format, path_ + ": missing key " + in_quotes(key) + ", expected " + expected);
        }
        std::ostringstream found;
        node->visit([&](const auto & value) { found << value; });
        throw Error(ErrorKind::format, path_ + ": " + key + " is " + found.str() + ", expected " + expected);
    }

  private:
    const toml::node * take(const char * key) {
        used_.insert(key);
        return table_.get(key);
    }

    std::string           path_;
    toml::table           table_;
    std::set<std::string> used_;
};

} // namespace

RandomBackbone read_backbone_shape(const std::string & path) {
    ShapeTable     table(path);
    RandomBackbone shape;
    ModelConfig &  c      = shape.config;
    c.architecture        = "llama";
    c.name                = table.text("name");
    c.n_layer             = table.integer("layers", std::nullopt, 1, 1024);
    c.n_embd              = table.integer("width", std::nullopt, 8, 1 << 16);
    c.n_head              = table.integer("heads", std::nullopt, 1, 1024);
    c.n_head_kv           = table.integer("kv-heads", c.n_head, 1, 1024);
    c.n_ff                = table.integer("ffn", std::nullopt, 8, 1 << 18);
    c.n_ctx_train         = table.integer("context", std::nullopt, 8, 1 << 20);
    c.rope_base           = float(table.number("rope-base", 10000.0, 1.0, 1e9));
    c.rms_eps             = kRmsEps;
    c.tied                = table.flag("tied", true);
    shape.embedding_scale = table.number("embedding-scale", 1.0, 0.01, 100.0);
    shape.n_learned_vocab = table.integer("vocab", 0, 0, 1 << 20);
    shape.lookup_heads    = table.flag("lookup-heads", false);
    table.require_all_used();
    if (c.n_embd % c.n_head != 0 || (c.n_embd / c.n_head) % 2 != 0) {
        table.fail("heads", "a divisor of width with an even quotient (the head size)");
    }
    if (c.n_head % c.n_head_kv != 0) {
        table.fail("kv-heads", "a divisor of heads");
    }
    if (shape.n_learned_vocab != 0 && shape.n_learned_vocab < kFewestTokens) {
        table.fail("vocab", "0 or at least " + std::to_string(kFewestTokens) + ", for every byte, BOS and EOS");
    }
    c.head_dim = c.n_embd / c.n_head;
    if (shape.lookup_heads && !has_room_for_lookup_heads(c)) {
        table.fail("lookup-heads", "false: they need two layers, and heads of 8 to two thirds of the width");
    }
    c.n_vocab = shape.n_learned_vocab != 0 ? shape.n_learned_vocab : kFewestTokens;
    return shape;
}

TokenizerData backbone_vocabulary(const RandomBackbone & shape, const std::vector<Example> & examples) {
    if (shape.n_learned_vocab == 0) {
        return byte_level_vocabulary();
    }
    std::vector<std::string> texts;
    for (const Example & example : examples) {
        texts.push_back(example.question);
        texts.push_back(target_text(example, 0, format_of(example.kind).answer_prefix));
    }
    return learn_bpe(texts, shape.n_learned_vocab);
}

NewBackbone read_new_backbone(const std::string & shape_path, const std::string & data) {
    const RandomBackbone       shape = read_backbone_shape(shape_path);
    const std::vector<Example> examples =
        shape.n_learned_vocab == 0 ? std::vector<Example>() : read_examples(get_split(data, "train"));
    return { shape, backbone_vocabulary(shape, examples) };
}

void write_random_backbone(const RandomBackbone & given, uint64_t seed, const std::string & path,
                           const TokenizerData & vocabulary) {
    RandomBackbone shape                  = given;
    shape.config.n_vocab                  = int(vocabulary.tokens.size());
    const ModelConfig &           c       = shape.config;
    const std::vector<TensorSpec> tensors = tensors_to_init(c);
    uint64_t                      n       = 0;
    GgufWriter                    writer(path, true);
    for (const TensorSpec & tensor : tensors) {
        writer.add_tensor(tensor.gguf, GGML_TYPE_F32, tensor.ne);
        n += n_elements(tensor.ne);
    }
    FileMetadata metadata;
    metadata.name = c.name;
    write_metadata(writer, metadata, "model", n);
    writer.set_u32(keys::general_file_type, 0);
    write_model_config(writer, c);
    write_tokenizer_data(writer, vocabulary);
    writer.begin_data();
    std::vector<float> embedding;
    for (const TensorSpec & tensor : tensors) {
        const bool         is_random = tensor.role != TensorRole::vector;
        std::vector<float> values(size_t(n_elements(tensor.ne)), tensor.start);
        Rng                rng(seed, stream_id(tensor.gguf));
        if (is_random) {
            for (float & value : values) {
                value = float(init_stddev(tensor, shape) * rng.normal());
            }
        }
        if (shape.lookup_heads) {
            set_lookup_heads(shape, tensor.gguf, embedding, values);
        }
        if (tensor.gguf == "token_embd.weight") {
            embedding = values;
        }
        writer.write_tensor(tensor.gguf, values.data(), values.size() * sizeof(float));
    }
    writer.finish();
}

} // namespace penelope
