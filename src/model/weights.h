// Buffers for weights. A tensor of a GGUF file is used from the memory map where the device can read it, repacked into
// a faster CPU layout where that pays, and copied to the device otherwise.
#pragma once

#include "arch/tensor_table.h"
#include "gguf/reader.h"
#include "graph/graph.h"
#include "model/layer_split.h"

#include <memory>
#include <string>
#include <vector>

namespace penelope {

// How graphs use a tensor; limits the layouts it may have.
enum class WeightUse {
    matrix, // only as left operand of products
    table,  // get_rows, possibly also products
    vector, // element-wise
};

class WeightStore {
  public:
    // use_mmap: use weights from the memory map where possible (the process dies if the file is truncated meanwhile).
    // repack: use ggml's extra buffer types. pack: use our own layout (graph/packed_product.h); only for CPU-only
    // graphs.
    WeightStore(const DeviceInfo & device, bool repack, bool use_mmap = true, bool pack = false);
    ~WeightStore();
    WeightStore(WeightStore &&) noexcept;

    // A tensor of the file; a memory map stays open as long as the store. Has data after load(). Adding a tensor twice
    // (tied head) returns the same node unless the two uses need different layouts.
    Node add(std::shared_ptr<const GgufReader> file, const GgufTensor & tensor, WeightUse use);

    // A tensor initialized from host memory.
    Node add_host(const std::string & name, ggml_type type, const std::vector<int64_t> & ne, std::vector<uint8_t> data,
                  WeightUse use = WeightUse::vector);
    Node add_host(const std::string & name, const std::vector<int64_t> & ne, const std::vector<float> & data);

    // A tensor whose values the caller sets after load().
    Node add_empty(const std::string & name, ggml_type type, const std::vector<int64_t> & ne);

    // Allocates and loads everything added so far. Throws Error(memory) with needed and free bytes.
    void load();

    size_t            n_bytes() const; // all weights, mapped ones included
    std::vector<Node> nodes() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// One store per device of a model that is split by layers.
class WeightStores {
  public:
    WeightStores(const LayerSplit & split, bool repack, bool use_mmap = true);

    WeightStore & on_device(int i) { return stores_[size_t(i)]; }
    // The store for a tensor of the backbone: that of its layer; the first layer's for the embedding, the last one's
    // for the head.
    WeightStore & of(const TensorSpec & spec);
    WeightStore & of_head() { return on_device(split_.last()); }
    int           n_devices() const { return int(stores_.size()); }

    const LayerSplit & split() const { return split_; }

    void   load();
    size_t n_bytes() const;

  private:
    LayerSplit               split_;
    std::vector<WeightStore> stores_;
};

} // namespace penelope
