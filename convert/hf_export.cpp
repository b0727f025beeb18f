#include "convert/hf_export.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "convert/gguf_source.h"
#include "convert/llama_layout.h"
#include "convert/metadata.h"
#include "convert/output_dir.h"
#include "convert/safetensors.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "latent/sidecar.h"
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
    const GgufTensor *   source;
    std::vector<int64_t> shape;    // row-major, slowest first
    uint32_t             head_dim; // rows to put back into HF's order; 0: as they are
};

bool close(float a, float b) {
    return std::fabs(a - b) <= 1e-5f * std::fabs(b);
}

bool reproduces(const Llama3RopeScaling & scaling, const std::vector<float> & factors, double theta,
                uint32_t head_dim) {
    const auto made = llama3_rope_factors(scaling, theta, head_dim);
    return made.size() == factors.size() && std::equal(made.begin(), made.end(), factors.begin(), close);
}

// By HF name, in the order PyTorch's writers use.
std::map<std::string, HfTensor> plan_tensors(const GgufReader & gguf, const HfLlamaConfig & config) {
    std::map<std::string, HfTensor> plan;
    std::set<std::string>           used = { "rope_freqs.weight" };
    const auto add = [&](const std::string & hf_name, const std::string & gguf_name, int64_t rows, int64_t columns,
                         uint32_t head_dim) {
        const bool                 vector = columns == 0;
        const std::vector<int64_t> shape =
            vector ? std::vector<int64_t>{ rows } : std::vector<int64_t>{ rows, columns };
        plan[hf_name] = { &gguf.get_tensor(gguf_name, { shape.rbegin(), shape.rend() }), shape, head_dim };
        used.insert(gguf_name);
    };
    add("model.embed_tokens.weight", "token_embd.weight", config.n_vocab, config.n_embd, 0);
    add("model.norm.weight", "output_norm.weight", config.n_embd, 0, 0);
    if (!config.tied) {
        add("lm_head.weight", "output.weight", config.n_vocab, config.n_embd, 0);
    }
    for (uint32_t il = 0; il < config.n_layer; il++) {
        for (const auto & module : llama_modules()) {
            const ModuleShape shape = llama_module_shape(module, config);
            add(hf_tensor_name(module, il), gguf_tensor_name(module, il), shape.rows, shape.columns,
                module.order == RowOrder::same ? 0 : config.head_dim);
        }
    }
    for (const auto & tensor : gguf.tensors()) {
        if (!used.count(tensor.name) && !is_lora_tensor(tensor.name) && !is_module_tensor(tensor.name)) {
            throw Error(ErrorKind::unsupported,
                        gguf.path() + ": tensor " + in_quotes(tensor.name) + " has no place in a Llama checkpoint");
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
        if (tensor.head_dim == 0) {
            read_rows_f32(*tensor.source, first, n, rows.data());
        } else {
            for (int64_t i = 0; i < n; i++) {
                read_rows_f32(*tensor.source, gguf_row_of_hf_row(first + i, tensor.head_dim), 1,
                              rows.data() + i * width);
            }
        }
        writer.write(rows.data(), rows.size() * sizeof(float));
        progress.bytes_done += rows.size() * sizeof(float);
        if (options.progress) {
            options.progress(progress);
        }
        throw_if_cancelled(options.cancelled);
    }
    gguf.release_pages(*tensor.source);
}

HfLlamaConfig hf_config_of(const GgufReader & gguf, const TokenizerData & tokenizer) {
    HfLlamaConfig config = read_gguf_llama_config(gguf);
    if (const GgufTensor * rope = gguf.find_tensor("rope_freqs.weight")) {
        std::vector<float> factors(size_t(rope->n_elements()));
        read_rows_f32(*rope, 0, rope->n_elements() / rope->ne[0], factors.data());
        config.rope_scaling = recover_llama3_scaling(factors, config.rope_theta, config.head_dim);
    } else if (gguf.find_str(keys::arch("llama", keys::rope_scaling_type)).value_or("none") != "none") {
        throw Error(ErrorKind::unsupported, gguf.path() + ": its kind of rope scaling is not supported");
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

Llama3RopeScaling recover_llama3_scaling(const std::vector<float> & factors, double theta, uint32_t head_dim) {
    const double      largest = double(*std::max_element(factors.begin(), factors.end()));
    Llama3RopeScaling scaling{ largest, 1.0, 4.0, 0.0 };

    // For a wavelength between the limits: 1/v = (1 - s)/f + s with s = (context / wavelength - low) / (high - low), so s is
    // linear in 1 / wavelength and two such points fix the line.
    std::vector<std::pair<double, double>> points; // 1 / wavelength, s
    for (size_t i = 0; i < factors.size(); i++) {
        const double v = double(factors[i]);
        if (v > 1.0 && v < largest) {
            const double wavelength = 2 * k_pi * std::pow(theta, 2.0 * double(i) / double(head_dim));
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
            reproduces(candidate, factors, theta, head_dim)) {
            return candidate;
        }
    }
    throw Error(ErrorKind::unsupported,
                "tensor 'rope_freqs.weight': is not the scaling of Llama 3 and cannot be expressed in a config.json");
}

FileResult export_hf(const ExportOptions & options, const GgufReader & gguf) {
    const TokenizerData tokenizer = read_tokenizer_data(gguf);
    const HfLlamaConfig config    = hf_config_of(gguf, tokenizer);
    const auto          plan      = plan_tensors(gguf, config);

    FileResult result{ "hf directory", options.out_path, "F32" };
    OutputDir  out(options.out_path, options.force);
    write_file(out.file("config.json"), dump_json(hf_llama_config_json(config), 2) + "\n", false);
    write_hf_tokenizer(tokenizer, config.n_context, out);
    write_file(out.file("README.md"), model_card(gguf), false);

    SafetensorsWriter writer(out.file("model.safetensors"), false);
    writer.set_metadata("format", "pt");
    StreamProgress progress{ 0, plan.size(), 0, 0, "" };
    for (const auto & [name, tensor] : plan) {
        writer.add_tensor(name, SafetensorsType::f32, tensor.shape);
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
