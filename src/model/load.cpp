#include "model/load.h"

#include "base/error.h"
#include "base/rng.h"

#include <algorithm>
#include <map>
#include <set>

namespace penelope {

namespace {

class Loader {
  public:
    Loader(std::shared_ptr<const GgufReader> file, const HostLora & lora, WeightStore & store)
        : file_(std::move(file)), lora_(lora), store_(store) {}

    Node vector(const std::string & name, int64_t n) {
        const GgufTensor & tensor = take(name, { n });
        if (tensor.type != GGML_TYPE_F32) {
            throw Error(ErrorKind::format, file_->path() + ": tensor " + name + " has type " +
                                               ggml_type_name(tensor.type) + ", expected f32");
        }
        return store_.add(file_, tensor, WeightUse::vector);
    }

    Node table(const std::string & name, int64_t n_in, int64_t n_rows) {
        return store_.add(file_, take(name, { n_in, n_rows }), WeightUse::table);
    }

    Linear matrix(const std::string & name, int64_t n_in, int64_t n_out) {
        Linear layer;
        layer.weight = store_.add(file_, take(name + ".weight", { n_in, n_out }), WeightUse::matrix);
        if (has(name + ".bias")) {
            layer.bias = vector(name + ".bias", n_out);
        }
        layer.lora = pair(name + ".weight", n_in, n_out);
        return layer;
    }

    LoraPair pair(const std::string & name, int64_t n_in, int64_t n_out) {
        const auto found = lora_.find(name);
        if (found == lora_.end()) {
            return {};
        }
        const HostLoraPair & host = found->second;
        if (host.n_in != n_in || host.n_out != n_out) {
            throw Error(ErrorKind::format,
                        "adapter for " + name + ": is for [" + std::to_string(host.n_in) + ", " +
                            std::to_string(host.n_out) + "], the backbone has [" + std::to_string(n_in) + ", " +
                            std::to_string(n_out) + "]",
                        "the adapter belongs to another model");
        }
        used_pairs_.insert(name);
        LoraPair result;
        result.a = store_.add_host(name + ".lora_a", { host.n_in, host.rank }, host.a);
        result.b = store_.add_host(name + ".lora_b", { host.rank, host.n_out }, host.b);
        return result;
    }

    bool has(const std::string & name) const { return file_->find_tensor(name) != nullptr; }

    void check_all_used(bool others_allowed) const {
        for (const auto & [name, host] : lora_) {
            if (!used_pairs_.count(name)) {
                throw Error(ErrorKind::format,
                            "adapter for " + name + ": the backbone " + file_->path() + " has no such weight",
                            "the adapter belongs to another model");
            }
        }
        for (const GgufTensor & tensor : file_->tensors()) {
            if (!others_allowed && !taken_.count(tensor.name)) {
                throw Error(ErrorKind::format,
                            file_->path() + ": tensor " + tensor.name + " is not part of a llama backbone");
            }
        }
    }

  private:
    const GgufTensor & take(const std::string & name, const std::vector<int64_t> & ne) {
        taken_.insert(name);
        return file_->get_tensor(name, ne);
    }

    std::shared_ptr<const GgufReader> file_;
    const HostLora &                  lora_;
    WeightStore &                     store_;
    std::set<std::string>             taken_, used_pairs_;
};

RopeParams rope_params(const ModelConfig & c, Node factors) {
    RopeParams rope;
    rope.n_dims     = c.head_dim;
    rope.mode       = GGML_ROPE_TYPE_NORMAL;
    rope.freq_base  = c.rope_base;
    rope.n_ctx_orig = c.n_ctx_train;
    rope.factors    = factors;
    return rope;
}

} // namespace

Backbone load_backbone(std::shared_ptr<const GgufReader> file, const HostLora & lora, WeightStore & store,
                       bool others_allowed) {
    Backbone model;
    model.config          = read_model_config(*file);
    const ModelConfig & c = model.config;
    Loader              load(file, lora, store);

    model.embedding   = load.table("token_embd.weight", c.n_embd, c.n_vocab);
    model.output_norm = load.vector("output_norm.weight", c.n_embd);
    // A tied head gets a tensor of its own: as a matrix it may take a faster layout than a table can.
    if (load.has("output.weight")) {
        model.head = load.matrix("output", c.n_embd, c.n_vocab);
    } else {
        model.head.weight =
            store.add(file, file->get_tensor("token_embd.weight", { c.n_embd, c.n_vocab }), WeightUse::matrix);
    }
    Node factors = load.has("rope_freqs.weight") ? load.vector("rope_freqs.weight", c.head_dim / 2) : nullptr;
    model.rope   = rope_params(c, factors);

    for (int il = 0; il < c.n_layer; il++) {
        const std::string p = "blk." + std::to_string(il) + ".";
        LlamaLayer        layer{};
        layer.attn_norm = load.vector(p + "attn_norm.weight", c.n_embd);
        layer.q         = load.matrix(p + "attn_q", c.n_embd, c.n_embd_q());
        layer.k         = load.matrix(p + "attn_k", c.n_embd, c.n_embd_kv());
        layer.v         = load.matrix(p + "attn_v", c.n_embd, c.n_embd_kv());
        layer.o         = load.matrix(p + "attn_output", c.n_embd_q(), c.n_embd);
        layer.ffn_norm  = load.vector(p + "ffn_norm.weight", c.n_embd);
        layer.gate      = load.matrix(p + "ffn_gate", c.n_embd, c.n_ff);
        layer.up        = load.matrix(p + "ffn_up", c.n_embd, c.n_ff);
        layer.down      = load.matrix(p + "ffn_down", c.n_ff, c.n_embd);
        model.layers.push_back(layer);
    }
    load.check_all_used(others_allowed);
    return model;
}

namespace {

// Random weights of one type, drawn once per shape and used for every tensor of it: drawing and quantizing a whole model
// would take longer than measuring it. Each tensor still has memory of its own.
class RandomWeights {
  public:
    RandomWeights(ggml_type type, uint64_t seed, WeightStore & store) : type_(type), rng_(seed), store_(store) {}

    Node matrix(const std::string & name, int64_t n_in, int64_t n_out, WeightUse use = WeightUse::matrix) {
        const ggml_type type = n_in % ggml_blck_size(type_) == 0 ? type_ : GGML_TYPE_F16;
        auto &          data = cache_[{ n_in, n_out }];
        if (data.empty()) {
            std::vector<float> row(static_cast<size_t>(n_in));
            const size_t       row_size = ggml_row_size(type, n_in);
            data.resize(row_size * size_t(n_out));
            for (int64_t i = 0; i < n_out; i++) {
                if (i < kDistinctRows) {
                    for (float & value : row) {
                        value = (rng_.uniform_float() - 0.5f) * 0.08f;
                    }
                    ggml_quantize_chunk(type, row.data(), data.data() + i * int64_t(row_size), 0, 1, n_in, nullptr);
                } else {
                    std::copy_n(data.begin() + ptrdiff_t((i % kDistinctRows) * int64_t(row_size)), row_size,
                                data.begin() + ptrdiff_t(i * int64_t(row_size)));
                }
            }
        }
        return store_.add_host(name, type, { n_in, n_out }, data, use);
    }

    Linear linear(const std::string & name, int64_t n_in, int64_t n_out) {
        Linear layer;
        layer.weight = matrix(name, n_in, n_out);
        return layer;
    }

    Node ones(const std::string & name, int64_t n) {
        return store_.add_host(name, { n }, std::vector<float>(size_t(n), 1.0f));
    }

  private:
    static constexpr int64_t                                    kDistinctRows = 64;
    ggml_type                                                   type_;
    Rng                                                         rng_;
    WeightStore &                                               store_;
    std::map<std::pair<int64_t, int64_t>, std::vector<uint8_t>> cache_;
};

} // namespace

Backbone random_backbone(const ModelConfig & c, ggml_type type, uint64_t seed, WeightStore & store) {
    RandomWeights random(type, seed, store);
    Backbone      model;
    model.config      = c;
    model.embedding   = random.matrix("token_embd.weight", c.n_embd, c.n_vocab, WeightUse::table);
    model.output_norm = random.ones("output_norm.weight", c.n_embd);
    model.head.weight = random.matrix("output.weight", c.n_embd, c.n_vocab);
    model.rope        = rope_params(c, nullptr);
    for (int il = 0; il < c.n_layer; il++) {
        const std::string p = "blk." + std::to_string(il) + ".";
        LlamaLayer        layer{};
        layer.attn_norm = random.ones(p + "attn_norm.weight", c.n_embd);
        layer.q         = random.linear(p + "attn_q.weight", c.n_embd, c.n_embd_q());
        layer.k         = random.linear(p + "attn_k.weight", c.n_embd, c.n_embd_kv());
        layer.v         = random.linear(p + "attn_v.weight", c.n_embd, c.n_embd_kv());
        layer.o         = random.linear(p + "attn_output.weight", c.n_embd_q(), c.n_embd);
        layer.ffn_norm  = random.ones(p + "ffn_norm.weight", c.n_embd);
        layer.gate      = random.linear(p + "ffn_gate.weight", c.n_embd, c.n_ff);
        layer.up        = random.linear(p + "ffn_up.weight", c.n_embd, c.n_ff);
        layer.down      = random.linear(p + "ffn_down.weight", c.n_ff, c.n_embd);
        model.layers.push_back(layer);
    }
    return model;
}

void add_random_lora(Backbone & model, int rank, uint64_t seed, WeightStore & store) {
    RandomWeights random(GGML_TYPE_F32, seed, store);
    for (LlamaLayer & layer : model.layers) {
        for (Linear * linear : { &layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down }) {
            const std::string name = ggml_get_name(linear->weight);
            linear->lora.a         = random.matrix(name + ".lora_a", linear->weight->ne[0], rank, WeightUse::vector);
            linear->lora.b         = random.matrix(name + ".lora_b", rank, linear->weight->ne[1], WeightUse::vector);
        }
    }
}

} // namespace penelope
