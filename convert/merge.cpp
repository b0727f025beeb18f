#include "convert/merge.h"

#include "base/error.h"
#include "base/format.h"
#include "convert/convert_model.h"
#include "convert/gguf_source.h"
#include "convert/metadata.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "sidecar/sidecar.h"
#include "text/prompt_format.h"

#include <cmath>
#include <map>
#include <string>

namespace penelope {

namespace {

struct Pair {
    int64_t            n_in = 0;
    int64_t            rank = 0;
    std::vector<float> a; // [n_in, rank]
    std::vector<float> b; // [rank, n_out], scaled
};

std::vector<float> all_values(const GgufTensor & tensor) {
    std::vector<float> values(size_t(tensor.n_elements()));
    read_rows_f32(tensor, 0, tensor.n_elements() / tensor.ne[0], values.data());
    return values;
}

// By the name of the base tensor. Every pair must be complete and fit it.
std::map<std::string, Pair> read_pairs(const GgufReader & adapter, const GgufReader & base) {
    const float                 alpha = adapter.get_f32(keys::adapter_lora_alpha);
    std::map<std::string, Pair> pairs;
    for (const auto & a : adapter.tensors()) {
        if (!is_lora_tensor(a.name) || a.name.back() != 'a') {
            continue;
        }
        const std::string  name   = a.name.substr(0, a.name.size() - 7);
        const GgufTensor * b      = adapter.find_tensor(name + ".lora_b");
        const GgufTensor * weight = base.find_tensor(name);
        if (!b || !weight || a.ne[0] != weight->ne[0] || b->ne[1] != weight->ne[1] || a.ne[1] != b->ne[0] ||
            weight->n_dims != 2 || a.n_elements() != a.ne[0] * a.ne[1] || b->n_elements() != b->ne[0] * b->ne[1]) {
            throw Error(ErrorKind::format,
                        adapter.path() + ": the pair of " + in_quotes(name) + " does not fit the base");
        }
        Pair pair;
        pair.n_in = a.ne[0];
        pair.rank = a.ne[1];
        pair.a    = all_values(a);
        pair.b    = all_values(*b);
        for (auto & value : pair.b) {
            value *= alpha / float(pair.rank);
        }
        pairs.emplace(name, std::move(pair));
    }
    for (const auto & tensor : adapter.tensors()) {
        if (is_lora_tensor(tensor.name) && !pairs.count(tensor.name.substr(0, tensor.name.size() - 7))) {
            throw Error(ErrorKind::format,
                        adapter.path() + ": lora_a or lora_b of " + in_quotes(tensor.name) + " is missing");
        }
    }
    if (pairs.empty()) {
        throw Error(ErrorKind::format, adapter.path() + ": has no LoRA tensors");
    }
    return pairs;
}

TensorJob merged_job(const GgufReader & base, const GgufTensor & tensor, ggml_type type, const Pair & pair) {
    TensorJob job = gguf_job(base, tensor, type);
    job.raw       = nullptr;
    job.f32       = nullptr;
    job.read      = [&tensor, &pair](int64_t first, int64_t n, float * out) {
        read_rows_f32(tensor, first, n, out);
        for (int64_t i = 0; i < n; i++) {
            float *       row = out + i * pair.n_in;
            const float * b   = pair.b.data() + (first + i) * pair.rank;
            for (int64_t r = 0; r < pair.rank; r++) {
                const float * a      = pair.a.data() + r * pair.n_in;
                const float   factor = b[r];
                for (int64_t j = 0; j < pair.n_in; j++) {
                    row[j] += factor * a[j];
                }
            }
        }
    };
    return job;
}

} // namespace

FileResult export_merged(const ExportOptions & options, const GgufReader & adapter, const GgufReader & base) {
    if (is_sidecar(adapter) || is_bundle(adapter)) {
        check_base(read_sidecar_config(adapter), read_base_info(base));
    }
    const auto pairs = read_pairs(adapter, base);

    std::vector<const GgufTensor *> tensors;
    std::vector<TensorInfo>         facts;
    for (const auto & tensor : base.tensors()) {
        if (!is_lora_tensor(tensor.name) && !is_module_tensor(tensor.name)) {
            tensors.push_back(&tensor);
            facts.push_back({ tensor.name, shape_of(tensor), tensor.type });
        }
    }
    std::vector<TypeChoice> choices;
    if (options.type.empty()) {
        for (const GgufTensor * tensor : tensors) {
            choices.push_back({ tensor->type, tensor->type });
        }
    } else {
        OverrideList none({});
        choices = choose_backbone_types(facts, parse_file_type(options.type), read_backbone_shape(base), none);
    }

    FileResult result{ "merged model", options.out_path, options.type.empty() ? "as in the base" : options.type };
    std::vector<TensorJob> jobs;
    for (size_t i = 0; i < tensors.size(); i++) {
        const auto pair = pairs.find(tensors[i]->name);
        jobs.push_back(pair == pairs.end() ? gguf_job(base, *tensors[i], choices[i].type)
                                           : merged_job(base, *tensors[i], choices[i].type, pair->second));
        record_tensor(result, jobs.back(), choices[i], tensors[i]->type, tensors[i]->size);
    }

    result.path = target_path(
        options.out_path, base.find_str(keys::general_name).value_or("model") + "-merged", result.n_parameters,
        options.type.empty() ? most_frequent_type(result) : parse_file_type(options.type).name, result.kind);
    GgufWriter writer(result.path, options.force);
    writer.copy_keys(base);
    remove_sidecar_keys(writer);
    const auto own = find_prompt_format(adapter);
    if (const auto prompt_format = own ? own : find_prompt_format(base)) {
        write_prompt_format(writer, *prompt_format); // the merged weights are asked as the LoRA was
    }
    writer.set_str(keys::general_type, "model");
    if (!options.type.empty()) {
        writer.set_u32(keys::general_file_type, parse_file_type(options.type).number);
        writer.set_u32(keys::general_quantization_version, GGML_QNT_VERSION);
    }
    declare_tensors(writer, jobs);
    stream_tensors(writer, jobs, options.stream);
    writer.finish();
    return result;
}

} // namespace penelope
