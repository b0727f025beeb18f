// The tensors of a Hugging Face checkpoint directory as one namespace, whatever the shards are called.
//
// Input: a directory with *.safetensors, with or without model.safetensors.index.json. Output: lookup by tensor name. A
// tensor in two shards, or one the index promises and no shard has, is an Error.
#pragma once

#include "convert/safetensors.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace penelope {

class HfCheckpoint {
  public:
    static HfCheckpoint open(const std::string & dir);

    const std::string &       dir() const { return dir_; }
    std::vector<std::string>  names() const; // sorted
    const SafetensorsTensor * find(std::string_view name) const;
    const SafetensorsTensor & get(std::string_view name, const std::vector<int64_t> & shape) const;

    // Drops the pages of a part of a tensor's data that has been copied elsewhere.
    void release_pages(const SafetensorsTensor & tensor, size_t offset, size_t size) const;

  private:
    struct TensorLocation {
        size_t                    shard;
        const SafetensorsTensor * tensor;
    };

    std::string                                     dir_;
    std::vector<SafetensorsReader>                  shards_;
    std::unordered_map<std::string, TensorLocation> locations_;
};

} // namespace penelope
