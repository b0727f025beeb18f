#include "train/save_model.h"

#include "convert/metadata.h"
#include "gguf/keys.h"
#include "gguf/writer.h"
#include "model/lora.h"

#include <set>

namespace penelope {

namespace {

constexpr uint32_t kFileTypeF32 = 0; // llama.cpp's LLAMA_FTYPE_ALL_F32

std::set<std::string> trained_names(const TrainedModel & model) {
    std::set<std::string> names;
    for (const TrainableGroup & group : model.groups()) {
        for (const ParameterGroup::Parameter & parameter : group.parameters.parameters) {
            names.insert(parameter.name);
        }
    }
    return names;
}

void write_identity(GgufWriter & writer, const std::string & name, const std::string & type, const std::string & base,
                    uint64_t n_parameters) {
    FileMetadata metadata;
    metadata.name = name;
    if (!base.empty()) {
        metadata.base_models.push_back(base);
    }
    write_metadata(writer, metadata, type, n_parameters);
    writer.set_u32(keys::general_file_type, kFileTypeF32);
    writer.set_u32(keys::general_quantization_version, GGML_QNT_VERSION);
}

// LoRA pairs and modules; backbone weights go into their own file.
void write_adapter_tensors(GgufWriter & writer, const TrainedModel & model) {
    std::vector<ParameterGroup::Parameter> all;
    for (const TrainableGroup & group : model.groups()) {
        for (const ParameterGroup::Parameter & parameter : group.parameters.parameters) {
            if (is_lora_tensor(parameter.name) || is_module_tensor(parameter.name)) {
                all.push_back(parameter);
                writer.add_tensor(parameter.name, GGML_TYPE_F32, parameter.ne);
            }
        }
    }
    writer.begin_data();
    for (const ParameterGroup::Parameter & parameter : all) {
        const std::vector<float> values = model.optimizer().values(parameter.name);
        writer.write_tensor(parameter.name, values.data(), values.size() * sizeof(float));
    }
    writer.finish();
}

uint64_t n_trained(const TrainedModel & model, bool in_adapter) {
    uint64_t n = 0;
    for (const TrainableGroup & group : model.groups()) {
        for (const ParameterGroup::Parameter & parameter : group.parameters.parameters) {
            const bool adapter = is_lora_tensor(parameter.name) || is_module_tensor(parameter.name);
            n += adapter == in_adapter ? uint64_t(ggml_nelements(model.optimizer().parameter(parameter.name))) : 0;
        }
    }
    return n;
}

// The base with the trained weights in F32, as any llama.cpp program loads it; with the wording it answers to by
// itself.
void save_backbone(const TrainedModel & model, const std::string & name, const std::string & path,
                   const std::optional<PromptFormat> & prompt_format,
                   const GgufWriter::BeforeRename &    before_rename = {}) {
    const GgufReader &          base    = model.base();
    const std::set<std::string> trained = trained_names(model);
    GgufWriter                  writer(path, true);
    writer.copy_keys(base);
    write_identity(writer, name, "model", "", n_trained(model, false));
    if (prompt_format) {
        write_prompt_format(writer, *prompt_format);
    }
    for (const GgufTensor & tensor : base.tensors()) {
        writer.add_tensor(tensor.name, GGML_TYPE_F32, std::vector<int64_t>(tensor.ne, tensor.ne + tensor.n_dims));
    }
    writer.begin_data();
    for (const GgufTensor & tensor : base.tensors()) {
        const std::vector<float> values =
            trained.count(tensor.name) ? model.optimizer().values(tensor.name) : read_f32(base, tensor);
        writer.write_tensor(tensor.name, values.data(), values.size() * sizeof(float));
    }
    writer.finish(before_rename);
}

void save_adapter(const TrainedModel & model, const SavedMetadata & texts, SidecarConfig sidecar,
                  const std::string & path) {
    GgufWriter writer(path, true);
    if (!model.training().format()) {
        writer.set_str(keys::general_architecture, sidecar.base.architecture);
        writer.set_str(keys::adapter_type, "lora");
        writer.set_f32(keys::adapter_lora_alpha, model.choice().lora_alpha);
        write_prompt_format(writer, prompt_format_of(sidecar));
    } else {
        sidecar.k_default     = uint32_t(texts.k_default);
        sidecar.visible_steps = texts.visible_steps;
        sidecar.train_config  = texts.train_config;
        sidecar.eval_results  = texts.eval_results;
        write_sidecar_identity(writer, sidecar);
        write_sidecar_keys(writer, sidecar);
    }
    write_identity(writer, texts.name, "adapter", sidecar.base.name, n_trained(model, true));
    write_adapter_tensors(writer, model);
}

} // namespace

void save_model(const TrainedModel & model, const SavedMetadata & texts, const std::string & path) {
    if (!model.training().format() && model.choice().full) {
        save_backbone(model, texts.name, path, prompt_format_of(model.sidecar()));
    } else {
        save_adapter(model, texts, model.sidecar(), path);
    }
}

void save_sidecar_and_backbone(const TrainedModel & model, const SavedMetadata & texts, const std::string & path,
                               const std::string & backbone) {
    save_backbone(model, texts.name, backbone, std::nullopt, [&](const std::string & written) {
        SidecarConfig sidecar    = model.sidecar();
        sidecar.base.fingerprint = fingerprint_weights(GgufReader::open(written));
        sidecar.base.repo        = ""; // the new backbone is not the one that was downloaded
        sidecar.base.file        = "";
        save_adapter(model, texts, std::move(sidecar), path);
    });
}

} // namespace penelope
