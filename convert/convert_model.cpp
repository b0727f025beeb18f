// Hugging Face checkpoint -> backbone GGUF.
#include "convert/convert_model.h"

#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "convert/hf_checkpoint.h"
#include "convert/hf_config.h"
#include "convert/hf_tokenizer.h"
#include "convert/metadata.h"
#include "convert/reorder.h"
#include "gguf/keys.h"
#include "gguf/writer.h"
#include "model/backbone.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace penelope {

namespace fs = std::filesystem;

namespace {

// What checkpoints carry besides the decoder's weights: buffers of older versions, and parts the architecture leaves
// out.
bool is_ignorable(const std::string & name, const Architecture & arch) {
    const auto starts = [&](const char * prefix) { return name.rfind(prefix, 0) == 0; };
    return name.find("rotary_emb.inv_freq") != std::string::npos ||
           std::any_of(arch.hf_skipped.begin(), arch.hf_skipped.end(), starts);
}

struct PlannedTensor {
    TensorInfo                facts;
    const SafetensorsTensor * source; // null for generated tensors
    TensorSpec                spec;
    std::vector<float>        values = {}; // of a generated one
};

// F64 sources count as F32: that is what they are read as.
ggml_type source_type(const PlannedTensor & tensor) {
    if (!tensor.source) {
        return GGML_TYPE_F32;
    }
    switch (tensor.source->type) {
        case SafetensorsType::f16: return GGML_TYPE_F16;
        case SafetensorsType::bf16: return GGML_TYPE_BF16;
        default: return GGML_TYPE_F32;
    }
}

class Plan {
  public:
    Plan(const HfCheckpoint & checkpoint, const HfConfig & config) : checkpoint_(checkpoint) {
        const Architecture & arch = get_architecture(config.model);
        for (const TensorSpec & spec : tensors_of(config.model)) {
            if (const auto found = config.constants.find(spec.gguf); found != config.constants.end()) {
                tensors_.push_back({ { spec.gguf, spec.ne, GGML_TYPE_F32 }, nullptr, spec, found->second });
            }
            if (spec.hf.empty()) {
                continue;
            }
            if (spec.is_optional && config.model.tied) {
                used_.insert(spec.hf); // a stored copy of the embedding
                continue;
            }
            const std::string name = name_in_checkpoint(spec.hf, arch);
            // First of all: GCC 12 destroys the parts of an aggregate twice when a later initializer throws.
            const SafetensorsTensor & source = checkpoint_.get(name, spec.checkpoint_shape());
            tensors_.push_back({ { spec.gguf, spec.ne, GGML_TYPE_F32 }, &source, spec });
            used_.insert(name);
        }
        for (const auto & name : checkpoint.names()) {
            if (!used_.count(name) && !is_ignorable(name, arch)) {
                throw Error(ErrorKind::unsupported, checkpoint.dir() + ": tensor " + in_quotes(name) +
                                                        " is not part of a " + arch.name + " model");
            }
        }
    }

    const std::vector<PlannedTensor> & tensors() const { return tensors_; }

    std::vector<TensorInfo> facts() const {
        std::vector<TensorInfo> out;
        for (const auto & tensor : tensors_) {
            out.push_back(tensor.facts);
        }
        return out;
    }

    // The type most of the matrix data has, for output that loses nothing.
    std::string main_type() const {
        std::map<ggml_type, size_t> bytes;
        for (const auto & tensor : tensors_) {
            if (tensor.source && tensor.facts.ne.size() > 1) {
                bytes[source_type(tensor)] += tensor.source->size;
            }
        }
        const auto most = std::max_element(bytes.begin(), bytes.end(),
                                           [](const auto & a, const auto & b) { return a.second < b.second; });
        return most->first == GGML_TYPE_F16 ? "F16" : most->first == GGML_TYPE_BF16 ? "BF16" : "F32";
    }

    TensorJob job(const PlannedTensor & tensor, ggml_type type) const {
        if (!tensor.source) {
            return memory_job(tensor.facts.name, tensor.facts.ne, type, tensor.values.data());
        }
        TensorJob                 job{ tensor.facts.name, tensor.facts.ne, type };
        const SafetensorsTensor & source = *tensor.source;
        const int64_t             width  = tensor.facts.ne[0];
        const TensorSpec &        spec   = tensor.spec;
        job.read                         = [&source, width, &spec](int64_t first, int64_t n, float * out) {
            read_as_gguf(spec, first, n, width, out, [&](int64_t row, int64_t n_rows, float * into) {
                safetensors_to_f32(source, row * width, n_rows * width, into);
            });
        };
        const size_t row_bytes = size_t(width) * safetensors_type_size(source.type);
        job.release            = [this, &source, row_bytes](int64_t first, int64_t n) {
            checkpoint_.release_pages(source, size_t(first) * row_bytes, size_t(n) * row_bytes);
        };
        return job;
    }

  private:
    std::string name_in_checkpoint(const std::string & name, const Architecture & arch) const {
        const std::string usual = "model.";
        for (const char * prefix : arch.hf_prefixes) {
            const std::string other = prefix + name.substr(std::min(name.size(), usual.size()));
            if (name.rfind(usual, 0) == 0 && !checkpoint_.find(name) && checkpoint_.find(other)) {
                return other;
            }
        }
        return name;
    }

    const HfCheckpoint &       checkpoint_;
    std::vector<PlannedTensor> tensors_;
    std::set<std::string>      used_;
};

} // namespace

FileResult convert_model(const ConvertOptions & options) {
    const std::string  config_path = (fs::path(options.dir) / "config.json").string();
    const Json         json        = read_json_file(config_path);
    const HfConfig     config      = parse_hf_config(json, config_path);
    const HfCheckpoint checkpoint  = HfCheckpoint::open(options.dir);
    const Plan         plan(checkpoint, config);
    const HfTokenizer  tokenizer = read_hf_tokenizer(options.dir, config);

    const FileType &              file_type = parse_file_type(options.type.empty() ? plan.main_type() : options.type);
    OverrideList                  overrides(options.overrides);
    const ModelConfig &           model = config.model;
    const BackboneShape           shape{ uint32_t(model.n_layer), uint32_t(model.n_head), uint32_t(model.n_head_kv) };
    const std::vector<TypeChoice> choices = choose_backbone_types(plan.facts(), file_type, shape, overrides);
    overrides.require_all_used();

    FileResult             result{ "model", options.out_path, file_type.name };
    std::vector<TensorJob> jobs;
    for (size_t i = 0; i < choices.size(); i++) {
        const PlannedTensor & tensor = plan.tensors()[i];
        jobs.push_back(plan.job(tensor, choices[i].type));
        record_tensor(result, jobs.back(), choices[i], source_type(tensor), tensor.source ? tensor.source->size : 0);
        result.n_parameters -= tensor.source ? 0 : uint64_t(tensor.facts.ne[0]); // rope factors are no parameters
    }

    const FileMetadata metadata = read_metadata(options.dir);
    result.path = target_path(options.out_path, metadata.name, result.n_parameters, result.type, result.kind);
    GgufWriter writer(result.path, options.force);
    write_model_config(writer, config.model);
    write_metadata(writer, metadata, "model", result.n_parameters);
    writer.set_u32(keys::general_file_type, file_type.number);
    writer.set_u32(keys::general_quantization_version, GGML_QNT_VERSION);
    write_tokenizer_keys(writer, tokenizer);
    declare_tensors(writer, jobs);
    stream_tensors(writer, jobs, options.stream);
    writer.finish();
    return result;
}

} // namespace penelope
