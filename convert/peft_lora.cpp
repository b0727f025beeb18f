#include "convert/peft_lora.h"

#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "convert/reorder.h"
#include "model/backbone.h"
#include "text/regex.h"

#include <cmath>
#include <filesystem>
#include <map>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr double k_max_rank     = 1 << 20;
constexpr double k_max_alpha    = 1e9;
constexpr size_t k_max_patterns = 4096;

// A dictionary of patterns as PEFT uses them: the key matches the end of the module name at a dot.
class Patterns {
  public:
    Patterns(const Json & config, const char * field, const std::string & path) : where_(path + ": " + field) {
        if (!config.contains(field) || config[field].is_null()) {
            return;
        }
        if (!config[field].is_object()) {
            throw Error(ErrorKind::format, where_ + " is not an object");
        }
        if (config[field].size() > k_max_patterns) {
            throw Error(ErrorKind::format, where_ + " has more than " + std::to_string(k_max_patterns) + " patterns");
        }
        for (const auto & [pattern, value] : config[field].items()) {
            const double number = value.is_number() ? value.get<double>() : 0;
            if (!(number > 0 && number <= k_max_alpha)) {
                throw Error(ErrorKind::format, where_ + " has a value that is not a positive number");
            }
            try {
                list_.emplace_back(Regex::untrusted("\\A(?:.*\\.)?(?:" + pattern + ")\\z"), number);
            } catch (const Error & error) {
                throw Error(ErrorKind::format,
                            where_ + " has the pattern " + in_quotes(pattern) + ": " + error.message());
            }
        }
    }

    double find(const std::string & module, double fallback) const {
        try {
            for (const auto & [pattern, value] : list_) {
                if (pattern.is_in(module)) {
                    return value;
                }
            }
        } catch (const Error & error) {
            throw Error(error.kind, where_ + " cannot be searched: " + error.message());
        }
        return fallback;
    }

  private:
    std::string                           where_;
    std::vector<std::pair<Regex, double>> list_;
};

bool is_set(const Json & config, const char * field) {
    if (!config.contains(field)) {
        return false;
    }
    const Json & value = config[field];
    return !(value.is_null() || value == false || ((value.is_array() || value.is_object()) && value.empty()));
}

// Options that change what the weights mean and that a pair of matrices cannot express.
void refuse_unsupported(const Json & config, const std::string & path) {
    if (json_get<std::string>(config, "peft_type", path) != "LORA") {
        throw Error(ErrorKind::unsupported, path + ": peft_type is not LORA");
    }
    for (const char * field :
         { "use_dora", "fan_in_fan_out", "modules_to_save", "lora_bias", "layer_replication", "alora_invocation_tokens",
           "trainable_token_indices", "target_parameters", "use_qalora", "use_bdlora" }) {
        if (is_set(config, field)) {
            throw Error(ErrorKind::unsupported, path + ": " + field + " is not supported",
                        "only plain LoRA pairs can be converted");
        }
    }
    if (json_find<std::string>(config, "bias", path).value_or("none") != "none") {
        throw Error(ErrorKind::unsupported, path + ": trained biases are not supported");
    }
}

// "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight" -> "model.layers.0.mlp.up_proj" and 'A'; false for other
// names.
bool split_peft_name(const std::string & name, std::string & module, char & half) {
    constexpr std::string_view start = "base_model.model.";
    if (name.rfind(start, 0) != 0) {
        return false;
    }
    const std::string_view rest = std::string_view(name).substr(start.size());
    for (const std::string_view end :
         { ".lora_A.weight", ".lora_B.weight", ".lora_A.default.weight", ".lora_B.default.weight" }) {
        if (ends_with(rest, end)) {
            module = rest.substr(0, rest.size() - end.size());
            half   = end[6];
            return true;
        }
    }
    return false;
}

int64_t whole_rank(double rank, const std::string & path) {
    if (!(rank >= 1 && rank <= k_max_rank && rank == std::floor(rank))) {
        throw Error(ErrorKind::format,
                    path + ": a rank is not a whole number from 1 to " + std::to_string(int64_t(k_max_rank)));
    }
    return int64_t(rank);
}

// "model.layers.0.mlp.up_proj"
std::string module_name(const TensorSpec & spec) {
    return spec.hf.substr(0, spec.hf.rfind('.'));
}

struct Halves {
    const SafetensorsTensor * a = nullptr;
    const SafetensorsTensor * b = nullptr;
};

// By place in the table, so that the output does not depend on the order of the source.
std::map<size_t, Halves> collect_pairs(const SafetensorsReader & weights, const std::vector<TensorSpec> & tensors,
                                       const Architecture & arch) {
    std::map<std::string, size_t> by_name; // of the module
    for (size_t i = 0; i < tensors.size(); i++) {
        if (tensors[i].role == TensorRole::projection) {
            by_name[module_name(tensors[i])] = i;
        }
    }
    std::map<size_t, Halves> pairs;
    for (const auto & tensor : weights.tensors()) {
        std::string name;
        char        half = 0;
        if (!split_peft_name(tensor.name, name, half)) {
            throw Error(ErrorKind::unsupported, weights.path() + ": unknown tensor " + in_quotes(tensor.name));
        }
        for (const std::string prefix : arch.hf_prefixes) {
            if (name.rfind(prefix, 0) == 0) {
                name = "model." + name.substr(prefix.size());
            }
        }
        const auto found = by_name.find(name);
        if (found == by_name.end()) {
            throw Error(ErrorKind::unsupported,
                        weights.path() + ": tensor " + in_quotes(tensor.name) + ": no such layer in the base model");
        }
        Halves & entry                    = pairs[found->second];
        (half == 'A' ? entry.a : entry.b) = &tensor;
    }
    return pairs;
}

} // namespace

TensorSpec lora_a_spec(const TensorSpec & base, int64_t rank) {
    TensorSpec spec;
    spec.gguf    = base.gguf + ".lora_a";
    spec.hf      = module_name(base) + ".lora_A.weight";
    spec.ne      = { base.ne[0], rank };
    spec.columns = base.columns;
    return spec;
}

TensorSpec lora_b_spec(const TensorSpec & base, int64_t rank) {
    TensorSpec spec;
    spec.gguf = base.gguf + ".lora_b";
    spec.hf   = module_name(base) + ".lora_B.weight";
    spec.ne   = { rank, base.ne[1] };
    spec.rows = base.rows;
    return spec;
}

PeftLora read_peft_lora(const std::string & dir, const ModelConfig & base) {
    const std::string path   = (fs::path(dir) / "adapter_config.json").string();
    const Json        config = read_json_file(path);
    refuse_unsupported(config, path);
    const double rank   = json_get<double>(config, "r", path);
    const double alpha  = json_get<double>(config, "lora_alpha", path);
    const bool   rslora = json_find<bool>(config, "use_rslora", path).value_or(false);
    if (!(alpha > 0 && alpha <= k_max_alpha)) {
        throw Error(ErrorKind::format, path + ": lora_alpha is not a positive number");
    }
    const Patterns ranks(config, "rank_pattern", path);
    const Patterns alphas(config, "alpha_pattern", path);

    const std::string weights_path = (fs::path(dir) / "adapter_model.safetensors").string();
    const std::string base_model   = json_find<std::string>(config, "base_model_name_or_path", path).value_or("");
    PeftLora          lora{ SafetensorsReader::open(weights_path), base_model, 0, {} };

    std::vector<double>           wanted_alphas; // the alpha that alone would scale the pair right
    std::map<double, size_t>      votes;
    const std::vector<TensorSpec> tensors = tensors_of(base);
    for (const auto & [place, halves] : collect_pairs(lora.weights, tensors, get_architecture(base))) {
        const TensorSpec & spec = tensors[place];
        const std::string  name = module_name(spec);
        if (!halves.a || !halves.b) {
            throw Error(ErrorKind::format, weights_path + ": lora_A or lora_B of " + in_quotes(name) + " is missing");
        }
        const int64_t              r = whole_rank(ranks.find(name, rank), path);
        const std::vector<int64_t> a_shape{ r, spec.ne[0] }, b_shape{ spec.ne[1], r };
        if (halves.a->shape != a_shape || halves.b->shape != b_shape) {
            throw Error(ErrorKind::format, weights_path + ": the pair of " + in_quotes(name) + " has shapes " +
                                               format_shape(halves.a->shape) + " and " + format_shape(halves.b->shape) +
                                               ", expected " + format_shape(a_shape) + " and " + format_shape(b_shape));
        }
        const double a = alphas.find(name, alpha);
        wanted_alphas.push_back(rslora ? a * std::sqrt(double(r)) : a);
        votes[wanted_alphas.back()]++;
        lora.pairs.push_back({ spec, r, halves.a, halves.b, 1.0f });
    }
    if (lora.pairs.empty()) {
        throw Error(ErrorKind::format, weights_path + ": has no LoRA tensors");
    }
    double chosen = wanted_alphas[0];
    for (const auto & [value, n] : votes) {
        chosen = n > votes[chosen] ? value : chosen;
    }
    lora.alpha = float(chosen);
    for (size_t i = 0; i < lora.pairs.size(); i++) {
        lora.pairs[i].b_factor = wanted_alphas[i] == chosen ? 1.0f : float(wanted_alphas[i] / chosen);
    }
    return lora;
}

std::vector<TensorJob> lora_jobs(const PeftLora & lora) {
    std::vector<TensorJob> jobs;
    for (const auto & pair : lora.pairs) {
        const auto job = [](const TensorSpec & spec, const SafetensorsTensor & source) {
            TensorJob made{ spec.gguf, spec.ne, GGML_TYPE_F32 };
            made.read = [spec, &source, width = spec.ne[0]](int64_t first, int64_t n, float * out) {
                read_as_gguf(spec, first, n, width, out, [&](int64_t row, int64_t n_rows, float * into) {
                    safetensors_to_f32(source, row * width, n_rows * width, into);
                });
            };
            return made;
        };
        TensorJob a = job(lora_a_spec(pair.base, pair.rank), *pair.a);
        TensorJob b = job(lora_b_spec(pair.base, pair.rank), *pair.b);
        b.read      = [pair, read = b.read](int64_t first, int64_t n, float * out) {
            read(first, n, out);
            if (pair.b_factor != 1.0f) {
                for (int64_t i = 0; i < n * pair.rank; i++) {
                    out[i] *= pair.b_factor;
                }
            }
        };
        jobs.push_back(std::move(a));
        jobs.push_back(std::move(b));
    }
    return jobs;
}

} // namespace penelope
