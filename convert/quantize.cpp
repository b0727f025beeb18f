// GGUF file -> GGUF file with other tensor types: backbones, LoRAs, sidecars and bundles.
#include "base/error.h"
#include "base/format.h"
#include "convert/convert.h"
#include "convert/convert_model.h"
#include "convert/gguf_source.h"
#include "convert/metadata.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "sidecar/sidecar.h"

#include <chrono>

namespace penelope {

namespace {

bool is_adapter_tensor(const std::string & name) {
    return is_lora_tensor(name) || is_module_tensor(name);
}

// A bundle follows both rules, each for its own tensors. A pattern counts as used when it finds a tensor on either
// side.
std::vector<TypeChoice> choose_types(const GgufReader & gguf, const FileType & file_type,
                                     const std::vector<TypeOverride> & overrides, bool has_importance) {
    std::vector<TensorInfo> backbone;
    std::vector<TensorInfo> adapter;
    for (const auto & tensor : gguf.tensors()) {
        (is_adapter_tensor(tensor.name) ? adapter : backbone).push_back({ tensor.name, shape_of(tensor), tensor.type });
    }
    OverrideList patterns(overrides);
    const auto   backbone_choices =
        backbone.empty()
              ? std::vector<TypeChoice>()
              : choose_backbone_types(backbone, file_type, read_backbone_shape(gguf), patterns, has_importance);
    const auto adapter_choices = choose_adapter_types(adapter, file_type, patterns);
    patterns.require_all_used();

    std::vector<TypeChoice> choices;
    size_t                  i_backbone = 0;
    size_t                  i_adapter  = 0;
    for (const auto & tensor : gguf.tensors()) {
        choices.push_back(is_adapter_tensor(tensor.name) ? adapter_choices[i_adapter++]
                                                         : backbone_choices[i_backbone++]);
    }
    return choices;
}

void refuse_requantizing(const GgufReader & gguf, const std::vector<TypeChoice> & choices) {
    for (size_t i = 0; i < choices.size(); i++) {
        const GgufTensor & tensor = gguf.tensors()[i];
        if (ggml_is_quantized(tensor.type) && ggml_is_quantized(choices[i].type) && tensor.type != choices[i].type) {
            throw Error(ErrorKind::usage,
                        gguf.path() + ": is quantized already (" + in_quotes(tensor.name) + " is " +
                            ggml_type_name(tensor.type) + "); quantizing again loses quality",
                        "start from the F32, F16 or BF16 file, or use --allow-requantize");
        }
    }
}

} // namespace

FileResult quantize_file(const QuantizeOptions & options) {
    const auto       start     = std::chrono::steady_clock::now();
    const FileType & file_type = parse_file_type(options.type);
    const GgufReader gguf      = GgufReader::open(options.in_path);
    const auto       choices   = choose_types(gguf, file_type, options.overrides, !options.importance.empty());
    if (!options.allow_requantize) {
        refuse_requantizing(gguf, choices);
    }

    FileResult result{ gguf.find_str(keys::adapter_type).value_or(gguf.find_str(keys::general_type).value_or("model")),
                       options.out_path, file_type.name };
    std::vector<TensorJob> jobs;
    for (size_t i = 0; i < choices.size(); i++) {
        const GgufTensor & tensor = gguf.tensors()[i];
        jobs.push_back(gguf_job(gguf, tensor, choices[i].type));
        const auto important = options.importance.find(tensor.name);
        if (important != options.importance.end()) {
            if (int64_t(important->second.size()) != tensor.ne[0]) {
                throw Error(ErrorKind::usage, "importance of " + in_quotes(tensor.name) + ": is for " +
                                                  std::to_string(important->second.size()) +
                                                  " inputs, the tensor has " + std::to_string(tensor.ne[0]));
            }
            jobs.back().importance = important->second.data();
        }
        record_tensor(result, jobs.back(), choices[i], tensor.type, tensor.size);
    }
    result.path = target_path(options.out_path, gguf.find_str(keys::general_name).value_or(""), result.n_parameters,
                              result.type, result.kind);
    if (!options.dry_run) {
        GgufWriter writer(result.path, options.force);
        writer.copy_keys(gguf);
        writer.set_u32(keys::general_file_type, file_type.number);
        writer.set_u32(keys::general_quantization_version, GGML_QNT_VERSION);
        if (!options.importance.empty()) {
            writer.set_str(keys::quantize_imatrix_file, options.importance_from);
            writer.set_i32(keys::quantize_imatrix_entries, int32_t(options.importance.size()));
        }
        declare_tensors(writer, jobs);
        stream_tensors(writer, jobs, options.stream);
        writer.finish();
    }
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
}

} // namespace penelope
