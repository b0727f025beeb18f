// Hugging Face Llama checkpoint -> backbone GGUF.
#include "convert/convert_model.h"

#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "convert/hf_checkpoint.h"
#include "convert/hf_config.h"
#include "convert/hf_tokenizer.h"
#include "convert/llama_layout.h"
#include "convert/metadata.h"
#include "gguf/keys.h"
#include "gguf/writer.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace penelope {

namespace fs = std::filesystem;

namespace {

// What llama checkpoints carry besides their weights: buffers of older versions.
bool is_ignorable(const std::string & name) {
    return name.find("rotary_emb.inv_freq") != std::string::npos;
}

struct PlannedTensor {
    TensorFacts               facts;
    const SafetensorsTensor * source;   // null for generated tensors
    uint32_t                  head_dim; // of the rows to reorder, 0: as they are
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
    Plan(const HfCheckpoint & checkpoint, const HfLlamaConfig & config) : checkpoint_(checkpoint) {
        const int64_t d = config.n_embd;
        const int64_t v = config.n_vocab;
        if (config.rope_scaling) {
            rope_factors_ = llama3_rope_factors(*config.rope_scaling, config.rope_theta, config.head_dim);
            tensors_.push_back(
                { { "rope_freqs.weight", { int64_t(rope_factors_.size()) }, GGML_TYPE_F32 }, nullptr, 0 });
        }
        add("token_embd.weight", "model.embed_tokens.weight", v, d, 0);
        for (uint32_t il = 0; il < config.n_layer; il++) {
            for (const auto & module : llama_modules()) {
                const ModuleShape shape = llama_module_shape(module, config);
                add(gguf_tensor_name(module, il), hf_tensor_name(module, il), shape.rows, shape.columns,
                    module.order == RowOrder::same ? 0 : config.head_dim);
            }
        }
        add("output_norm.weight", "model.norm.weight", d, 0, 0);
        if (config.tied) {
            used_.insert("lm_head.weight"); // a stored copy of the embedding
        } else {
            add("output.weight", "lm_head.weight", v, d, 0);
        }
        for (const auto & name : checkpoint.names()) {
            if (!used_.count(name) && !is_ignorable(name)) {
                throw Error(ErrorKind::unsupported,
                            checkpoint.dir() + ": tensor " + in_quotes(name) + " is not part of a Llama model");
            }
        }
    }

    const std::vector<PlannedTensor> & tensors() const { return tensors_; }

    std::vector<TensorFacts> facts() const {
        std::vector<TensorFacts> out;
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
            return memory_job(tensor.facts.name, tensor.facts.ne, type, rope_factors_.data());
        }
        TensorJob                 job{ tensor.facts.name, tensor.facts.ne, type };
        const SafetensorsTensor & source   = *tensor.source;
        const int64_t             width    = tensor.facts.ne[0];
        const uint32_t            head_dim = tensor.head_dim;
        job.read                           = [&source, width, head_dim](int64_t first, int64_t n, float * out) {
            if (head_dim == 0) {
                safetensors_to_f32(source, first * width, n * width, out);
                return;
            }
            for (int64_t i = 0; i < n; i++) {
                safetensors_to_f32(source, hf_row_of_gguf_row(first + i, head_dim) * width, width, out + i * width);
            }
        };
        const size_t row_bytes = size_t(width) * safetensors_type_size(source.type);
        job.release            = [this, &source, row_bytes](int64_t first, int64_t n) {
            checkpoint_.release_pages(source, size_t(first) * row_bytes, size_t(n) * row_bytes);
        };
        return job;
    }

  private:
    void add(const std::string & gguf_name, const std::string & hf_name, int64_t rows, int64_t columns,
             uint32_t head_dim) {
        const bool                 vector = columns == 0;
        const std::vector<int64_t> shape =
            vector ? std::vector<int64_t>{ rows } : std::vector<int64_t>{ rows, columns };
        const std::vector<int64_t> ne(shape.rbegin(), shape.rend());
        // First of all: GCC 12 destroys the parts of an aggregate twice when a later initializer throws.
        const SafetensorsTensor & source = checkpoint_.get(hf_name, shape);
        tensors_.push_back({ { gguf_name, ne, GGML_TYPE_F32 }, &source, head_dim });
        used_.insert(hf_name);
    }

    const HfCheckpoint &       checkpoint_;
    std::vector<PlannedTensor> tensors_;
    std::vector<float>         rope_factors_;
    std::set<std::string>      used_;
};

void check_architecture(const Json & config, const std::string & path) {
    const std::string type = json_find<std::string>(config, "model_type", path).value_or("");
    if (type != "llama") {
        throw Error(ErrorKind::unsupported, path + ": model type " + in_quotes(type) + " is not supported",
                    "supported is 'llama'");
    }
    for (const char * flag : { "attention_bias", "mlp_bias" }) {
        if (json_find<bool>(config, flag, path).value_or(false)) {
            throw Error(ErrorKind::unsupported, path + ": " + flag + " is not supported");
        }
    }
    if (config.contains("quantization_config") && !config["quantization_config"].is_null()) {
        throw Error(ErrorKind::unsupported, path + ": the checkpoint is quantized already",
                    "convert the original F32, F16 or BF16 checkpoint");
    }
}

} // namespace

FileResult convert_model(const ConvertOptions & options) {
    const std::string config_path = (fs::path(options.dir) / "config.json").string();
    const Json        json        = read_json_file(config_path);
    check_architecture(json, config_path);
    const HfLlamaConfig config     = parse_hf_llama_config(json, config_path);
    const HfCheckpoint  checkpoint = HfCheckpoint::open(options.dir);
    const Plan          plan(checkpoint, config);
    const HfTokenizer   tokenizer = read_hf_tokenizer(options.dir, config);

    const FileType &              file_type = parse_file_type(options.type.empty() ? plan.main_type() : options.type);
    OverrideList                  overrides(options.overrides);
    const BackboneShape           shape{ config.n_layer, config.n_head, config.n_head_kv };
    const std::vector<TypeChoice> choices = choose_backbone_types(plan.facts(), file_type, shape, overrides);
    overrides.require_all_used();

    FileResult             result{ "model", options.out_path, file_type.name };
    std::vector<TensorJob> jobs;
    for (size_t i = 0; i < choices.size(); i++) {
        const PlannedTensor & tensor = plan.tensors()[i];
        jobs.push_back(plan.job(tensor, choices[i].type));
        note_tensor(result, jobs.back(), choices[i], source_type(tensor), tensor.source ? tensor.source->size : 0);
        result.n_parameters -= tensor.source ? 0 : uint64_t(tensor.facts.ne[0]); // rope factors are no parameters
    }

    const FileMetadata metadata = read_metadata(options.dir);
    result.path = target_path(options.out_path, metadata.name, result.n_parameters, result.type, result.kind);
    GgufWriter writer(result.path, options.force);
    write_llama_keys(writer, config);
    write_metadata(writer, metadata, "model", result.n_parameters);
    writer.set_u32(keys::general_file_type, file_type.number);
    writer.set_u32(keys::general_quantization_version, GGML_QNT_VERSION);
    write_tokenizer_keys(writer, tokenizer);
    announce_tensors(writer, jobs);
    stream_tensors(writer, jobs, options.stream);
    writer.finish();
    return result;
}

} // namespace penelope
