// Memory for weights. Tensors of a GGUF file stay in its memory map where the device can read it there, go into one of the
// CPU's faster layouts (ggml's extra buffer types) where that pays, and are copied to the device otherwise.
#pragma once

#include "arch/tensor_table.h"
#include "gguf/reader.h"
#include "graph/graph.h"
#include "model/layer_split.h"

#include <memory>
#include <string>
#include <vector>

namespace penelope {

// How graphs use a tensor; decides which layouts it may take.
enum class WeightUse {
    matrix, // left operand of products only
    table,  // rows are looked up, perhaps multiplied as well
    vector, // read element by element
};

class WeightStore {
  public:
    // maps: weights stay in the file's map where the device can read them there. A file that shrinks under it ends the process.
    // repack: into ggml's faster layouts. pack: into our own (graph/packed_product.h), for graphs on the CPU alone.
    WeightStore(const DeviceInfo & device, bool repack, bool use_mmap = true, bool pack = false);
    ~WeightStore();
    WeightStore(WeightStore &&) noexcept;

    // A tensor of the file, which a map keeps open as long as the store. The node has data after load(). A second use of a
    // tensor (a tied head) gets the node of the first unless it takes another layout.
    Node add(std::shared_ptr<const GgufReader> file, const GgufTensor & tensor, WeightUse use);

    // A tensor with contents from the host.
    Node add_host(const std::string & name, ggml_type type, const std::vector<int64_t> & ne, std::vector<uint8_t> data,
                  WeightUse use = WeightUse::vector);
    Node add_host(const std::string & name, const std::vector<int64_t> & ne, const std::vector<float> & data);

    // A tensor whose contents the caller sets after load().
    Node add_empty(const std::string & name, ggml_type type, const std::vector<int64_t> & ne);

    // Places everything added so far. Throws Error(memory) with both sizes.
    void load();

    size_t            n_bytes() const; // of weights, mapped ones included
    std::vector<Node> nodes() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// Stores on the devices of a split, by their numbers.
class WeightStores {
  public:
    WeightStores(const LayerSplit & split, bool repack, bool use_mmap = true);

    WeightStore & on_device(int i) { return stores_[size_t(i)]; }
    // Where a tensor of the backbone goes: with its layer, the embedding with the first, the head with the last.
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
