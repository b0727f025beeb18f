// Sidecars and bundles to everything but Hugging Face checkpoints (hf_export.cpp).
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/format.h"
#include "base/output_dir.h"
#include "convert/convert.h"
#include "convert/convert_model.h"
#include "convert/gguf_source.h"
#include "convert/hf_config.h"
#include "convert/hf_export.h"
#include "convert/merge.h"
#include "convert/metadata.h"
#include "convert/peft_lora.h"
#include "convert/penelope_dir.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "sidecar/sidecar.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

namespace penelope {

namespace {

// The input, and the backbone it goes with: given, or the input itself when that is a bundle.
struct Inputs {
    explicit Inputs(const ExportOptions & options) : file(GgufReader::open(options.in_path)) {
        if (!options.base_path.empty()) {
            given_base.emplace(GgufReader::open(options.base_path));
        }
    }

    bool has_base() const { return given_base || is_bundle(file); }

    const GgufReader & base(const std::string & as) const {
        if (!has_base()) {
            throw Error(ErrorKind::usage, file.path() + ": exporting as " + as + " needs the backbone it belongs to",
                        "give it with -m BASE.gguf");
        }
        return given_base ? *given_base : file;
    }

    GgufReader                file;
    std::optional<GgufReader> given_base;
};

bool has_lora(const GgufReader & file) {
    return std::any_of(file.tensors().begin(), file.tensors().end(),
                       [](const GgufTensor & tensor) { return is_lora_tensor(tensor.name); });
}

SidecarConfig checked_sidecar(const GgufReader & file) {
    const SidecarConfig config = read_sidecar_config(file);
    check_sidecar_tensors(file, config);
    return config;
}

std::string base_name(const GgufReader & base) {
    return base.find_str(keys::general_name).value_or("");
}

void add_job(const GgufReader & file, const GgufTensor & tensor, ggml_type type, std::vector<TensorJob> & jobs,
             FileResult & result) {
    jobs.push_back(gguf_job(file, tensor, type));
    record_tensor(result, jobs.back(), { type, type }, tensor.type, tensor.size);
}

void write_jobs(GgufWriter & writer, const std::vector<TensorJob> & jobs, const ExportOptions & options) {
    declare_tensors(writer, jobs);
    stream_tensors(writer, jobs, options.stream);
    writer.finish();
}

void write_modules(const GgufReader & file, const SidecarConfig & config, const std::string & path,
                   FileResult & result) {
    std::map<std::string, std::vector<int64_t>> tensors; // by name: the order PyTorch's writers use
    for (const auto & shape : module_tensor_shapes(config, config.base.embedding_length)) {
        tensors[shape.name] = shape.ne;
    }
    SafetensorsWriter writer(path, false);
    for (const auto & [name, ne] : tensors) {
        writer.add_tensor(name, SafetensorsType::f32, { ne.rbegin(), ne.rend() });
    }
    writer.begin_data();
    std::vector<float> values;
    for (const auto & [name, ne] : tensors) {
        const GgufTensor & tensor = file.get_tensor(name, ne);
        values.resize(size_t(tensor.n_elements()));
        read_rows_f32(tensor, 0, tensor.n_elements() / tensor.ne[0], values.data());
        writer.write(values.data(), values.size() * sizeof(float));
        result.n_tensors++;
        result.n_parameters += values.size();
        result.bytes_in += tensor.size;
        result.bytes_out += values.size() * sizeof(float);
    }
    writer.finish();
}

FileResult export_penelope(const ExportOptions & options, const Inputs & in) {
    SidecarConfig config = checked_sidecar(in.file);
    FileResult    result{ "penelope directory", options.out_path, "F32" };
    OutputDir     out(options.out_path, options.force);
    if (has_lora(in.file)) {
        const GgufReader & base = in.base(options.as);
        const BaseInfo     info = read_base_info(base);
        check_base(config, info);
        if (config.base.repo.empty()) {
            config.base.repo = info.repo;
            config.base.file = info.file;
        }
        write_peft_lora(in.file, read_model_config(base), config.base.name, out, "lora/");
    }
    write_modules(in.file, config, out.file("penelope.safetensors"), result);
    write_file(out.file("penelope_config.json"), dump_json(penelope_config_json(config), 1) + "\n", false);
    write_file(out.file("README.md"), model_card(in.file), false);
    out.commit();
    return result;
}

FileResult export_peft(const ExportOptions & options, const Inputs & in) {
    const GgufReader & base = in.base(options.as);
    FileResult         result{ "peft directory", options.out_path, "F32" };
    OutputDir          out(options.out_path, options.force);
    write_peft_lora(in.file, read_model_config(base), base_name(base), out, "");
    write_file(out.file("README.md"), model_card(in.file), false);
    out.commit();
    for (const auto & tensor : in.file.tensors()) {
        if (is_lora_tensor(tensor.name)) {
            result.n_tensors++;
            result.n_parameters += uint64_t(tensor.n_elements());
            result.bytes_in += tensor.size;
            result.bytes_out += uint64_t(tensor.n_elements()) * sizeof(float);
        }
    }
    return result;
}

FileResult export_lora(const ExportOptions & options, const Inputs & in) {
    const SidecarConfig config = checked_sidecar(in.file);
    if (!has_lora(in.file)) {
        throw Error(ErrorKind::format, in.file.path() + ": has no LoRA tensors");
    }
    FileResult             result{ "lora", options.out_path, "F32" };
    std::vector<TensorJob> jobs;
    for (const auto & tensor : in.file.tensors()) {
        if (is_lora_tensor(tensor.name)) {
            // Other programs cannot merge quantized pairs.
            add_job(in.file, tensor, ggml_is_quantized(tensor.type) ? GGML_TYPE_F32 : tensor.type, jobs, result);
        }
    }
    result.path = target_path(options.out_path, base_name(in.file), result.n_parameters, result.type, result.kind);
    GgufWriter writer(result.path, options.force);
    writer.set_str(keys::general_type, "adapter");
    writer.set_str(keys::general_architecture, config.base.architecture);
    writer.set_str(keys::adapter_type, "lora");
    writer.set_f32(keys::adapter_lora_alpha, config.lora_alpha);
    for (const char * key : { keys::general_name, keys::general_license }) {
        if (const auto value = in.file.find_str(key)) {
            writer.set_str(key, *value);
        }
    }
    if (!config.base.name.empty()) {
        writer.set_u32(keys::general_base_model_count, 1);
        writer.set_str(keys::general_base_model(0, "name"), config.base.name);
    }
    if (!config.task.empty()) {
        writer.set_str(keys::adapter_lora_task_name, config.task);
    }
    write_prompt_format(writer, prompt_format_of(config));
    write_jobs(writer, jobs, options);
    return result;
}

FileResult export_bundle(const ExportOptions & options, const Inputs & in) {
    const GgufReader &  base   = in.base(options.as);
    const SidecarConfig config = checked_sidecar(in.file);
    check_base(config, read_base_info(base));
    if (is_bundle(base)) {
        throw Error(ErrorKind::usage, base.path() + ": is a bundle already", "give the plain backbone with -m");
    }
    FileResult             result{ "bundle", options.out_path, "as in the inputs" };
    std::vector<TensorJob> jobs;
    for (const auto & tensor : base.tensors()) {
        add_job(base, tensor, tensor.type, jobs, result);
    }
    for (const auto & tensor : in.file.tensors()) {
        if (is_lora_tensor(tensor.name) || is_module_tensor(tensor.name)) {
            add_job(in.file, tensor, tensor.type, jobs, result);
        }
    }
    result.path = target_path(options.out_path, in.file.find_str(keys::general_name).value_or("penelope") + "-bundle",
                              result.n_parameters, most_frequent_type(result), result.kind);
    GgufWriter writer(result.path, options.force);
    writer.copy_keys(base);
    write_bundle_identity(writer);
    write_sidecar_keys(writer, config);
    write_jobs(writer, jobs, options);
    return result;
}

FileResult export_merged_base(const ExportOptions & options, const Inputs & in) {
    return export_merged(options, in.file, in.base(options.as));
}

FileResult export_checkpoint(const ExportOptions & options, const Inputs & in) {
    return export_hf(options, in.file);
}

using ExportFunction = FileResult (*)(const ExportOptions & options, const Inputs & in);

constexpr std::pair<const char *, ExportFunction> kExporters[] = {
    { "penelope", export_penelope },  { "peft", export_peft },     { "lora", export_lora },
    { "merged", export_merged_base }, { "bundle", export_bundle }, { "hf", export_checkpoint },
};

ExportFunction find_exporter(const std::string & as) {
    std::vector<std::string> known;
    for (const auto & [name, run] : kExporters) {
        if (as == name) {
            return run;
        }
        known.emplace_back(name);
    }
    throw Error(ErrorKind::usage, "cannot export as " + in_quotes(as), "known are " + join(known, ", "));
}

} // namespace

FileResult export_sidecar(const ExportOptions & options) {
    const auto           start  = std::chrono::steady_clock::now();
    const ExportFunction run    = find_exporter(options.as);
    FileResult           result = run(options, Inputs(options));
    result.seconds              = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
}

} // namespace penelope
