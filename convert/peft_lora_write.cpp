// The writing half of peft_lora.h.
#include "convert/peft_lora.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "base/output_dir.h"
#include "convert/gguf_source.h"
#include "convert/reorder.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "model/backbone.h"
#include "sidecar/sidecar.h"

#include <cmath>
#include <map>
#include <set>

namespace penelope {

namespace {

struct PeftTensor {
    const GgufTensor * source;
    TensorSpec         spec;
};

// Without a fraction where it has none.
Json short_number(float value) {
    const bool is_whole = value == std::floor(value) && std::fabs(value) <= 9007199254740992.0f;
    return is_whole ? Json(int64_t(value)) : Json(double(value));
}

OrderedJson adapter_config(float alpha, const std::map<std::string, int64_t> & ranks, const std::string & base_name) {
    std::map<int64_t, size_t> votes;
    std::set<std::string>     targets;
    for (const auto & [module, rank] : ranks) {
        votes[rank]++;
        targets.insert(module.substr(module.rfind('.') + 1));
    }
    int64_t common = votes.begin()->first;
    for (const auto & [rank, n] : votes) {
        common = n > votes[common] ? rank : common;
    }
    OrderedJson patterns = OrderedJson::object();
    for (const auto & [module, rank] : ranks) {
        if (rank != common) {
            patterns[module] = rank;
        }
    }
    OrderedJson config;
    config["peft_type"]               = "LORA";
    config["task_type"]               = "CAUSAL_LM";
    config["base_model_name_or_path"] = base_name;
    config["inference_mode"]          = true;
    config["r"]                       = common;
    config["lora_alpha"]              = short_number(alpha);
    config["lora_dropout"]            = 0.0;
    config["rank_pattern"]            = patterns;
    config["alpha_pattern"]           = OrderedJson::object();
    config["target_modules"]          = targets;
    config["bias"]                    = "none";
    config["fan_in_fan_out"]          = false;
    config["init_lora_weights"]       = true;
    config["use_rslora"]              = false;
    config["use_dora"]                = false;
    return config;
}

} // namespace

void write_peft_lora(const GgufReader & gguf, const ModelConfig & base, const std::string & base_name, OutputDir & out,
                     const std::string & prefix) {
    std::map<std::string, TensorSpec> projections; // by GGUF name
    for (TensorSpec & spec : tensors_of(base)) {
        if (spec.role == TensorRole::projection) {
            const std::string name = spec.gguf;
            projections[name]      = std::move(spec);
        }
    }
    std::map<std::string, PeftTensor> tensors; // by name: the order PyTorch's writers use
    std::map<std::string, int64_t>    ranks;   // by module
    for (const auto & tensor : gguf.tensors()) {
        if (!is_lora_tensor(tensor.name)) {
            continue;
        }
        // "blk.0.attn_q.weight.lora_b"
        const bool is_a  = tensor.name.back() == 'a';
        const auto found = projections.find(tensor.name.substr(0, tensor.name.rfind('.')));
        if (found == projections.end()) {
            throw Error(ErrorKind::unsupported,
                        gguf.path() + ": tensor " + in_quotes(tensor.name) + " has no place in a PEFT adapter");
        }
        const int64_t    rank = is_a ? tensor.ne[1] : tensor.ne[0];
        const TensorSpec spec = is_a ? lora_a_spec(found->second, rank) : lora_b_spec(found->second, rank);
        if (tensor.n_elements() != spec.ne[0] * spec.ne[1] || tensor.ne[0] != spec.ne[0]) {
            throw Error(ErrorKind::format,
                        gguf.path() + ": tensor " + in_quotes(tensor.name) + " does not fit the base");
        }
        const std::string name                 = found->second.hf.substr(0, found->second.hf.rfind('.'));
        tensors["base_model.model." + spec.hf] = { &tensor, spec };
        const auto [it, inserted]              = ranks.emplace(name, rank);
        if (!inserted && it->second != rank) {
            throw Error(ErrorKind::format,
                        gguf.path() + ": the halves of the pair of " + in_quotes(name) + " have different ranks");
        }
    }
    if (tensors.empty()) {
        throw Error(ErrorKind::format, gguf.path() + ": has no LoRA tensors");
    }
    const float alpha = gguf.get_f32(keys::adapter_lora_alpha);
    if (!std::isfinite(alpha)) {
        throw Error(ErrorKind::format, gguf.path() + ": " + keys::adapter_lora_alpha + " is not a number");
    }

    SafetensorsWriter writer(out.file(prefix + "adapter_model.safetensors"), false);
    writer.set_metadata("format", "pt");
    for (const auto & [name, tensor] : tensors) {
        writer.add_tensor(name, SafetensorsType::f32, { tensor.source->ne[1], tensor.source->ne[0] });
    }
    writer.begin_data();
    std::vector<float> rows;
    for (const auto & [name, tensor] : tensors) {
        const GgufTensor & source = *tensor.source;
        const int64_t      width  = source.ne[0];
        const int64_t      n_rows = source.ne[1];
        rows.resize(size_t(width * n_rows));
        read_as_hf(tensor.spec, 0, n_rows, width, rows.data(),
                   [&](int64_t row, int64_t n, float * into) { read_rows_f32(source, row, n, into); });
        writer.write(rows.data(), rows.size() * sizeof(float));
    }
    writer.finish();
    write_file(out.file(prefix + "adapter_config.json"), dump_json(adapter_config(alpha, ranks, base_name), 2) + "\n",
               false);
}

} // namespace penelope
