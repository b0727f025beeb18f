// PEFT directory -> llama.cpp LoRA GGUF; Penelope directory (and a PEFT one) -> sidecar GGUF.
#include "base/error.h"
#include "base/format.h"
#include "convert/convert_model.h"
#include "convert/metadata.h"
#include "convert/peft_lora.h"
#include "convert/penelope_dir.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"

#include <filesystem>
#include <optional>

namespace penelope {

namespace fs = std::filesystem;

namespace {

GgufReader open_base(const ConvertOptions & options, const char * what) {
    if (options.base_path.empty()) {
        throw Error(ErrorKind::usage, options.dir + ": " + what + " needs the backbone it belongs to",
                    "give it with --base BASE.gguf");
    }
    return GgufReader::open(options.base_path);
}

// Gives each job its type in the file and counts it.
const FileType & choose_types(const ConvertOptions & options, std::vector<TensorJob> & jobs, FileResult & result) {
    const FileType &        file_type = parse_file_type(options.type.empty() ? "F32" : options.type);
    std::vector<TensorInfo> facts;
    for (const auto & job : jobs) {
        facts.push_back({ job.name, job.ne, job.type });
    }
    OverrideList overrides(options.overrides);
    const auto   choices = choose_adapter_types(facts, file_type, overrides);
    overrides.require_all_used();
    for (size_t i = 0; i < jobs.size(); i++) {
        const size_t bytes_in = jobs[i].size();
        jobs[i].type          = choices[i].type;
        record_tensor(result, jobs[i], choices[i], GGML_TYPE_F32, bytes_in);
    }
    result.type = file_type.name;
    return file_type;
}

void write_adapter(GgufWriter & writer, const ConvertOptions & options, const FileType & file_type,
                   FileMetadata metadata, const std::string & base_name, const std::vector<TensorJob> & jobs,
                   uint64_t n_parameters) {
    if (metadata.base_models.empty() && !base_name.empty()) {
        metadata.base_models.push_back(base_name);
    }
    write_metadata(writer, metadata, "adapter", n_parameters);
    writer.set_u32(keys::general_file_type, file_type.number);
    writer.set_u32(keys::general_quantization_version, GGML_QNT_VERSION);
    declare_tensors(writer, jobs);
    stream_tensors(writer, jobs, options.stream);
    writer.finish();
}

// "Llama-3.2-1B-penelope-listops"
std::string sidecar_name(const SidecarConfig & config) {
    std::string name = config.method;
    if (!config.base.name.empty()) {
        name = config.base.name + "-" + name;
    }
    return config.task.empty() ? name : name + "-" + config.task;
}

} // namespace

FileResult convert_lora(const ConvertOptions & options) {
    const GgufReader       base = open_base(options, "a LoRA directory");
    const PeftLora         lora = read_peft_lora(options.dir, read_model_config(base));
    std::vector<TensorJob> jobs = lora_jobs(lora);

    FileResult       result{ "lora", options.out_path, "" };
    const FileType & file_type = choose_types(options, jobs, result);

    const FileMetadata metadata = read_metadata(options.dir);
    result.path = target_path(options.out_path, metadata.name, result.n_parameters, result.type, result.kind);
    GgufWriter writer(result.path, options.force);
    writer.set_str(keys::general_architecture, base.get_str(keys::general_architecture));
    writer.set_str(keys::adapter_type, "lora");
    writer.set_f32(keys::adapter_lora_alpha, lora.alpha);
    const std::string base_name =
        lora.base_model.empty() ? base.find_str(keys::general_name).value_or("") : lora.base_model;
    write_adapter(writer, options, file_type, metadata, base_name, jobs, result.n_parameters);
    return result;
}

FileResult convert_penelope(const ConvertOptions & options) {
    const GgufReader  base        = open_base(options, "a Penelope directory");
    const std::string config_path = (fs::path(options.dir) / "penelope_config.json").string();
    SidecarConfig     config  = parse_penelope_config(read_json_file(config_path), read_base_info(base), config_path);
    const auto        weights = SafetensorsReader::open((fs::path(options.dir) / "penelope.safetensors").string());

    std::vector<TensorJob>  jobs = module_jobs(weights, config);
    std::optional<PeftLora> lora;
    const fs::path          own_lora = fs::path(options.dir) / "lora";
    const std::string       lora_dir = !options.lora_dir.empty() ? options.lora_dir
                                       : fs::exists(own_lora)    ? own_lora.string()
                                                                 : "";
    if (!lora_dir.empty()) {
        lora.emplace(read_peft_lora(lora_dir, read_model_config(base)));
        config.lora_alpha = lora->alpha;
        for (auto & job : lora_jobs(*lora)) {
            jobs.push_back(std::move(job));
        }
    }

    FileResult       result{ config.method, options.out_path, "" };
    const FileType & file_type = choose_types(options, jobs, result);

    const FileMetadata metadata = read_metadata(options.dir, sidecar_name(config));
    result.path = target_path(options.out_path, metadata.name, result.n_parameters, result.type, result.kind);
    GgufWriter writer(result.path, options.force);
    write_sidecar_identity(writer, config);
    write_sidecar_keys(writer, config);
    write_adapter(writer, options, file_type, metadata, config.base.name, jobs, result.n_parameters);
    return result;
}

} // namespace penelope
