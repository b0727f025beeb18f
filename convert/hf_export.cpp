#include "convert/hf_export.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "base/output_dir.h"
#include "convert/gguf_source.h"
#include "convert/metadata.h"
#include "convert/reorder.h"
#include "convert/safetensors.h"
#include "gguf/reader.h"
#include "model/backbone.h"
#include "sidecar/sidecar.h"
#include "text/tokenizer_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace penelope {

namespace {

constexpr double  k_pi             = 3.14159265358979323846;
constexpr int64_t k_chunk_elements = 1 << 20;

struct HfTensor {
    const GgufTensor * source;
    TensorSpec         spec;
};

bool close(float a, float b) {
    return std::fabs(a - b) <= 1e-5f * std::fabs(b);
}

bool reproduces(const Llama3RopeScaling & scaling, const std::vector<float> & factors, double theta, int n_dims) {
    const auto made = llama3_rope_factors(scaling, theta, n_dims);
    return made.size() == factors.size() && std::equal(made.begin(), made.end(), factors.begin(), close);
}

// By HF name, in the order PyTorch's writers use.
std::map<std::string, HfTensor> plan_tensors(const GgufReader & gguf, const ModelConfig & config) {
    std::map<std::string, HfTensor> plan;
    std::set<std::string>           used;
    for (const TensorSpec & spec : tensors_of(config)) {
        if (spec.hf.empty() && spec.role != TensorRole::constant) {
            continue;
        }
        used.insert(spec.gguf);
        if (spec.role != TensorRole::constant && !(spec.is_optional && config.tied)) {
            const GgufTensor & source = gguf.get_tensor(spec.gguf, spec.ne);
            plan.emplace(spec.hf, HfTensor{ &source, spec });
        }
    }
    for (const auto & tensor : gguf.tensors()) {
        if (!used.count(tensor.name) && !is_lora_tensor(tensor.name) && !is_module_tensor(tensor.name)) {
            throw Error(ErrorKind::unsupported, gguf.path() + ": tensor " + in_quotes(tensor.name) +
                                                    " has no place in a " + config.architecture + " checkpoint");
        }
    }
    return plan;
}

void write_rows(SafetensorsWriter & writer, const GgufReader & gguf, const HfTensor & tensor, std::vector<float> & rows,
                const StreamOptions & options, StreamProgress & progress) {
    const int64_t width  = tensor.source->ne[0];
    const int64_t n_rows = tensor.source->n_elements() / width;
    const int64_t step   = std::max<int64_t>(1, k_chunk_elements / width);
    for (int64_t first = 0; first < n_rows; first += step) {
        const int64_t n = std::min(step, n_rows - first);
        rows.resize(size_t(n * width));
        read_as_hf(tensor.spec, first, n, width, rows.data(), [&](int64_t row, int64_t n_read, float * into) {
            read_rows_f32(*tensor.source, row, n_read, into);
        });
        writer.write(rows.data(), rows.size() * sizeof(float));
        progress.bytes_done += rows.size() * sizeof(float);
        if (options.progress) {
            options.progress(progress);
        }
        throw_if_cancelled(options.cancelled);
    }
    gguf.release_pages(*tensor.source);
}

HfConfig hf_config_of(const GgufReader & gguf, const TokenizerData & tokenizer) {
    HfConfig config;
    config.model = read_model_config(gguf);
    for (const TensorSpec & spec : tensors_of(config.model)) {
        const GgufTensor * tensor = spec.role == TensorRole::constant ? gguf.find_tensor(spec.gguf) : nullptr;
        if (tensor) {
            std::vector<float> & values = config.constants[spec.gguf];
            values.resize(size_t(gguf.get_tensor(spec.gguf, spec.ne).n_elements()));
            read_rows_f32(*tensor, 0, 1, values.data());
        }
    }
    if (const auto freqs = config.constants.find("rope_freqs.weight"); freqs != config.constants.end()) {
        config.rope_scaling =
            recover_llama3_scaling(freqs->second, double(config.model.rope_base), config.model.n_rope());
    }
    config.bos_token_id = tokenizer.bos;
    config.pad_token_id = tokenizer.padding;
    for (const auto & id : { tokenizer.eos, tokenizer.eot, tokenizer.eom }) {
        if (id) {
            config.eos_token_ids.push_back(*id);
        }
    }
    return config;
}

} // namespace

Llama3RopeScaling recover_llama3_scaling(const std::vector<float> & factors, double theta, int n_dims) {
    const double      largest = double(*std::max_element(factors.begin(), factors.end()));
    Llama3RopeScaling scaling{ largest, 1.0, 4.0, 0.0 };

    // For a wavelength between the limits: 1/v = (1 - s)/f + s with s = (context / wavelength - low) / (high - low), so
    // s is linear in 1 / wavelength and two such points fix the line.
    std::vector<std::pair<double, double>> points; // 1 / wavelength, s
    for (size_t i = 0; i < factors.size(); i++) {
        const double v = double(factors[i]);
        if (v > 1.0 && v < largest) {
            const double wavelength = 2 * k_pi * std::pow(theta, 2.0 * double(i) / double(n_dims));
            points.emplace_back(1.0 / wavelength, (1.0 / v - 1.0 / largest) / (1.0 - 1.0 / largest));
        }
    }
    std::vector<Llama3RopeScaling> candidates;
    if (points.size() >= 2) {
        const double slope =
            (points.front().second - points.back().second) / (points.front().first - points.back().first);
        const double intercept   = points.front().second - slope * points.front().first; // -low / (high - low)
        scaling.high_freq_factor = std::round((1.0 - 1.0 / intercept) * 1000.0) / 1000.0;
        scaling.original_context = std::round(slope * (scaling.high_freq_factor - 1.0));
        candidates.push_back(scaling);
    }
    if (!points.empty()) {
        candidates.push_back({ largest, 1.0, 4.0, std::round((points[0].second * 3.0 + 1.0) / points[0].first) });
    }
    for (double context = 32; context <= 1 << 22; context *= 2) {
        candidates.push_back({ largest, 1.0, 4.0, context });
    }
    for (const auto & candidate : candidates) {
        if (candidate.high_freq_factor > 1.0 && candidate.original_context > 0 &&
            reproduces(candidate, factors, theta, n_dims)) {
            return candidate;
        }
    }
    throw Error(ErrorKind::unsupported,
                "tensor 'rope_freqs.weight': is not the scaling of Llama 3 and cannot be expressed in a config.json");
}

FileResult export_hf(const ExportOptions & options, const GgufReader & gguf) {
    const TokenizerData tokenizer = read_tokenizer_data(gguf);
    const HfConfig      config    = hf_config_of(gguf, tokenizer);
    const auto          plan      = plan_tensors(gguf, config.model);

    FileResult result{ "hf directory", options.out_path, "F32" };
    OutputDir  out(options.out_path, options.force);
    write_file(out.file("config.json"), dump_json(hf_config_json(config), 2) + "\n", false);
    write_hf_tokenizer(tokenizer, uint32_t(config.model.n_ctx_train), out);
    write_file(out.file("README.md"), model_card(gguf), false);

    SafetensorsWriter writer(out.file("model.safetensors"), false);
    writer.set_metadata("format", "pt");
    StreamProgress progress{ 0, plan.size(), 0, 0, "" };
    for (const auto & [name, tensor] : plan) {
        writer.add_tensor(name, SafetensorsType::f32, tensor.spec.checkpoint_shape());
        progress.bytes_total += uint64_t(tensor.source->n_elements()) * sizeof(float);
    }
    writer.begin_data();
    std::vector<float> rows;
    for (const auto & [name, tensor] : plan) {
        progress.i_tensor = result.n_tensors;
        progress.name     = name;
        write_rows(writer, gguf, tensor, rows, options.stream, progress);
        result.n_tensors++;
        result.n_parameters += uint64_t(tensor.source->n_elements());
        result.bytes_in += tensor.source->size;
    }
    result.bytes_out = progress.bytes_total;
    writer.finish();
    out.commit();
    return result;
}

} // namespace penelope
