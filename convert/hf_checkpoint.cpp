#include "convert/hf_checkpoint.h"

#include "base/error.h"
#include "base/format.h"
#include "base/json.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr const char * k_index_name = "model.safetensors.index.json";

std::vector<std::string> shard_paths(const fs::path & dir, const nlohmann::json & index) {
    std::set<std::string> paths;
    if (!index.is_null()) {
        if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
            throw Error(ErrorKind::format, (dir / k_index_name).string() + ": 'weight_map' is missing");
        }
        for (const auto & [name, file] : index["weight_map"].items()) {
            if (!file.is_string() || fs::path(file.get<std::string>()).filename() != file.get<std::string>()) {
                throw Error(ErrorKind::format,
                            (dir / k_index_name).string() + ": '" + name + "' names no file of the directory");
            }
            paths.insert((dir / file.get<std::string>()).string());
        }
    } else {
        for (const auto & entry : fs::directory_iterator(dir)) {
            if (entry.path().extension() == ".safetensors" && entry.is_regular_file()) {
                paths.insert(entry.path().string());
            }
        }
    }
    if (paths.empty()) {
        throw Error(ErrorKind::not_found, dir.string() + ": no .safetensors file",
                    "only safetensors checkpoints can be converted; save the model with safe_serialization");
    }
    return { paths.begin(), paths.end() };
}

} // namespace

HfCheckpoint HfCheckpoint::open(const std::string & dir) {
    const fs::path       index_path = fs::path(dir) / k_index_name;
    const nlohmann::json index      = fs::exists(index_path) ? read_json_file(index_path.string()) : nlohmann::json();

    HfCheckpoint checkpoint;
    checkpoint.dir_ = dir;
    for (const auto & path : shard_paths(dir, index)) {
        checkpoint.shards_.push_back(SafetensorsReader::open(path));
    }
    for (size_t i = 0; i < checkpoint.shards_.size(); i++) {
        for (const auto & tensor : checkpoint.shards_[i].tensors()) {
            const auto [it, inserted] = checkpoint.locations_.emplace(tensor.name, TensorLocation{ i, &tensor });
            if (!inserted) {
                throw Error(ErrorKind::format, dir + ": tensor " + in_quotes(tensor.name) + " is in " +
                                                   checkpoint.shards_[it->second.shard].path() + " and in " +
                                                   checkpoint.shards_[i].path());
            }
        }
    }
    if (!index.is_null()) {
        for (const auto & [name, file] : index["weight_map"].items()) {
            if (!checkpoint.find(name)) {
                throw Error(ErrorKind::format, dir + ": tensor " + in_quotes(name) + " of the index is in no file");
            }
        }
    }
    return checkpoint;
}

std::vector<std::string> HfCheckpoint::names() const {
    std::vector<std::string> names;
    for (const auto & location : locations_) {
        names.push_back(location.first);
    }
    std::sort(names.begin(), names.end());
    return names;
}

const SafetensorsTensor * HfCheckpoint::find(std::string_view name) const {
    const auto it = locations_.find(std::string(name));
    return it == locations_.end() ? nullptr : it->second.tensor;
}

const SafetensorsTensor & HfCheckpoint::get(std::string_view name, const std::vector<int64_t> & shape) const {
    const auto it = locations_.find(std::string(name));
    if (it == locations_.end()) {
        throw Error(ErrorKind::format, dir_ + ": tensor " + in_quotes(name) + " is missing");
    }
    return shards_[it->second.shard].get(name, shape);
}

void HfCheckpoint::release_pages(const SafetensorsTensor & tensor, size_t offset, size_t size) const {
    shards_[locations_.at(tensor.name).shard].release_pages(tensor.data + offset, size);
}

} // namespace penelope
