// Backbones with random weights, for benchmarks.
#include "base/rng.h"
#include "model/load.h"

#include <algorithm>
#include <map>

namespace penelope {

namespace {

// Random weights, generated and quantized once per shape and copied to every tensor of that shape: generating a whole
// model would take longer than the benchmark.
class RandomWeights {
  public:
    RandomWeights(ggml_type type, uint64_t seed) : type_(type), rng_(seed) {}

    void set_store(WeightStore & store) { store_ = &store; }

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
        return store_->add_host(name, type, { n_in, n_out }, data, use);
    }

    Node constant(const TensorSpec & spec) {
        int64_t n = 1;
        for (int64_t extent : spec.ne) {
            n *= extent;
        }
        return store_->add_host(spec.gguf, spec.ne, std::vector<float>(size_t(n), spec.start));
    }

  private:
    static constexpr int64_t                                    kDistinctRows = 64;
    ggml_type                                                   type_;
    Rng                                                         rng_;
    WeightStore *                                               store_ = nullptr;
    std::map<std::pair<int64_t, int64_t>, std::vector<uint8_t>> cache_;
};

} // namespace

namespace {

template <typename StoreOf>
Backbone make_random(const ModelConfig & c, ggml_type type, uint64_t seed, const StoreOf & store_of) {
    RandomWeights random(type, seed);
    Backbone      model = make_backbone(c);
    for (const TensorSpec & spec : tensors_of(model)) {
        const bool is_head = spec.linear == &model.head; // created even if tied, so that the model has its real size
        if (spec.is_optional && !is_head) {
            continue;
        }
        random.set_store(store_of(spec));
        *spec.node = spec.role == TensorRole::vector
                         ? random.constant(spec)
                         : random.matrix(spec.gguf, spec.ne[0], spec.ne[1],
                                         spec.role == TensorRole::table ? WeightUse::table : WeightUse::matrix);
    }
    return model;
}

} // namespace

Backbone random_backbone(const ModelConfig & c, ggml_type type, uint64_t seed, WeightStore & store) {
    return make_random(c, type, seed, [&](const TensorSpec &) -> WeightStore & { return store; });
}

Backbone random_backbone(const ModelConfig & c, ggml_type type, uint64_t seed, WeightStores & stores) {
    Backbone model =
        make_random(c, type, seed, [&](const TensorSpec & spec) -> WeightStore & { return stores.of(spec); });
    model.layer_devices = stores.split().layers;
    return model;
}

void add_random_lora(Backbone & model, int rank, uint64_t seed, WeightStores & stores) {
    RandomWeights random(GGML_TYPE_F32, seed);
    for (const TensorSpec & spec : tensors_of(model)) {
        if (spec.role == TensorRole::projection) {
            random.set_store(stores.of(spec));
            spec.linear->lora.a = random.matrix(spec.gguf + ".lora_a", spec.ne[0], rank, WeightUse::vector);
            spec.linear->lora.b = random.matrix(spec.gguf + ".lora_b", rank, spec.ne[1], WeightUse::vector);
        }
    }
}

} // namespace penelope
