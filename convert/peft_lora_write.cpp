// The writing half of peft_lora.h.
#include "convert/peft_lora.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "convert/gguf_source.h"
#include "convert/llama_layout.h"
#include "convert/output_dir.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "latent/sidecar.h"

#include <cmath>
#include <map>
#include <set>

namespace penelope {

namespace {

struct PeftTensor {
    const GgufTensor * source;
    uint32_t           head_dim; // rows to put back into HF's order; 0: as they are
};

// "blk.0.attn_q.weight.lora_b" -> the module, its layer and 'b'.
const LlamaModule * module_of(const GgufReader & gguf, const GgufTensor & tensor, uint32_t & layer, char & half) {
    half = tensor.name.back();
    const LlamaModule * module =
        find_gguf_module(std::string_view(tensor.name).substr(0, tensor.name.size() - 7), layer);
    if (!module || !module->takes_lora) {
        throw Error(ErrorKind::unsupported,
                    gguf.path() + ": tensor " + in_quotes(tensor.name) + " has no place in a PEFT adapter");
    }
    return module;
}

Json whole_number(float value) {
    return value == std::floor(value) ? Json(int64_t(value)) : Json(double(value));
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
    config["lora_alpha"]              = whole_number(alpha);
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

void write_peft_lora(const GgufReader & gguf, const HfLlamaConfig & base, const std::string & base_name,
                     OutputDir & out, const std::string & prefix) {
    std::map<std::string, PeftTensor> tensors; // by name: the order PyTorch's writers use
    std::map<std::string, int64_t>    ranks;   // by module
    for (const auto & tensor : gguf.tensors()) {
        if (!is_lora_tensor(tensor.name)) {
            continue;
        }
        uint32_t            layer  = 0;
        char                half   = 0;
        const LlamaModule * module = module_of(gguf, tensor, layer, half);
        const ModuleShape   shape  = llama_module_shape(*module, base);
        const int64_t       rank   = half == 'a' ? tensor.ne[1] : tensor.ne[0];
        if (layer >= base.n_layer || tensor.n_elements() != rank * (half == 'a' ? shape.columns : shape.rows) ||
            tensor.ne[0] != (half == 'a' ? shape.columns : rank)) {
            throw Error(ErrorKind::format,
                        gguf.path() + ": tensor " + in_quotes(tensor.name) + " does not fit the base");
        }
        const std::string weight  = hf_tensor_name(*module, layer);
        const std::string name    = weight.substr(0, weight.size() - 7);
        const bool        reorder = half == 'b' && module->order != RowOrder::same;
        tensors["base_model.model." + name + (half == 'a' ? ".lora_A.weight" : ".lora_B.weight")] = {
            &tensor, reorder ? base.head_dim : 0
        };
        const auto [it, inserted] = ranks.emplace(name, rank);
        if (!inserted && it->second != rank) {
            throw Error(ErrorKind::format,
                        gguf.path() + ": the halves of the pair of " + in_quotes(name) + " have different ranks");
        }
    }
    if (tensors.empty()) {
        throw Error(ErrorKind::format, gguf.path() + ": holds no LoRA pair");
    }

    SafetensorsWriter writer(out.file(prefix + "adapter_model.safetensors"), false);
    writer.set_metadata("format", "pt");
    for (const auto & [name, tensor] : tensors) {
        writer.add_tensor(name, SafetensorsType::f32, { tensor.source->ne[1], tensor.source->ne[0] });
    }
    writer.begin_data();
    std::vector<float> rows;
    for (const auto & [name, tensor] : tensors) {
        const int64_t width  = tensor.source->ne[0];
        const int64_t n_rows = tensor.source->ne[1];
        rows.resize(size_t(width * n_rows));
        for (int64_t i = 0; i < n_rows; i++) {
            read_rows_f32(*tensor.source, tensor.head_dim == 0 ? i : gguf_row_of_hf_row(i, tensor.head_dim), 1,
                          rows.data() + i * width);
        }
        writer.write(rows.data(), rows.size() * sizeof(float));
    }
    writer.finish();
    write_file(out.file(prefix + "adapter_config.json"),
               dump_json(adapter_config(gguf.get_f32(keys::adapter_lora_alpha), ranks, base_name), 2) + "\n", false);
}

} // namespace penelope
