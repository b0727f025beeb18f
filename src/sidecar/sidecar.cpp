#include "sidecar/sidecar.h"

#include "base/error.h"
#include "base/format.h"
#include "base/hub_path.h"
#include "base/log.h"
#include "gguf/finite.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "sidecar/method_format.h"
#include "text/prompt_template.h"
#include "text/tokenizer_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace penelope {

namespace {

constexpr const char * k_adapter_type = "penelope";
constexpr const char * k_bundle_type  = "penelope-bundle";
constexpr uint32_t     k_version      = 1;

// Far above what anybody trains, low enough that no product of them overflows and no graph of them fills the memory. A
// graph holds every latent step: k_max times the layers of the interval.
constexpr uint32_t kMaxSteps         = 1024;
constexpr uint32_t kMaxSidecarLayers = 4096;
constexpr uint32_t kMaxRows          = 4096; // memory and readout
constexpr uint32_t kMaxSidecarWidth  = 1 << 20;
constexpr uint32_t kMaxSidecarTokens = 1 << 24;
constexpr int      kMaxApplications  = 65536;   // of layers by all latent steps; a graph holds each of them
constexpr size_t   kMaxJsonBytes     = 1 << 20; // of either text in JSON

struct Size {
    const char * name;
    uint32_t     value, max_value;
};

std::string text_or_empty(const GgufReader & file, const char * key) {
    return file.find_str(key).value_or("");
}

} // namespace

void check_sidecar_config(const SidecarConfig & config, const std::string & origin) {
    const auto fail = [&](const std::string & what) { throw Error(ErrorKind::format, origin + ": " + what); };
    if (config.version != k_version) {
        throw Error(ErrorKind::unsupported,
                    origin + ": sidecar version " + std::to_string(config.version) + " is not known",
                    "this program reads version " + std::to_string(k_version));
    }
    const MethodFormat * format = find_method_format(config.method);
    if (!format) {
        throw Error(ErrorKind::unsupported, origin + ": method " + in_quotes(config.method) + " is not known",
                    "known are " + join(method_format_names(), ", "));
    }
    if (config.base.architecture.empty()) {
        fail("base.architecture is empty");
    }
    const auto check_sizes = [&](std::initializer_list<Size> sizes) {
        for (const Size & size : sizes) {
            if (size.value == 0 || size.value > size.max_value) {
                fail(std::string(size.name) + " is " + std::to_string(size.value) + ", expected 1 to " +
                     std::to_string(size.max_value));
            }
        }
    };
    check_sizes({ { "k_max", config.k_max, kMaxSteps },
                  { "base.block_count", config.base.block_count, kMaxSidecarLayers },
                  { "base.embedding_length", config.base.embedding_length, kMaxSidecarWidth },
                  { "base.vocab_size", config.base.vocab_size, kMaxSidecarTokens } });
    if (config.k_default > config.k_max) {
        fail("k_default " + std::to_string(config.k_default) + " is above k_max " + std::to_string(config.k_max));
    }
    if (config.prompt_template != chat_prompt_template &&
        config.prompt_template.find("{question}") == std::string::npos) {
        fail("prompt_template has no {question}");
    }
    if (!(config.halt_cosine >= 0 && config.halt_cosine <= 1)) {
        fail("settled is not between 0 and 1");
    }
    if (!std::isfinite(config.lora_alpha) || config.lora_alpha < 0) {
        fail("adapter.lora.alpha is not a positive number");
    }
    for (const MethodField & field : format->fields) {
        const uint32_t value = field.number ? config.*field.number : 1;
        if ((value == 0 && !field.may_be_zero) || value > kMaxSidecarWidth) {
            fail(std::string(field.name) + " is " + std::to_string(value));
        }
    }
    if (std::max(config.n_memory, config.n_readout) > kMaxRows) {
        fail("memory_count and readout_count are above " + std::to_string(kMaxRows));
    }
    format->check(config, origin);
    const int n_applications =
        format->layer_applications(config, int(config.k_max)) - format->layer_applications(config, 0);
    if (n_applications > kMaxApplications) {
        fail("k_max " + std::to_string(config.k_max) + " takes " + std::to_string(n_applications) +
             " applications of a layer, at most " + std::to_string(kMaxApplications) + " are allowed");
    }
    for (const auto & [name, text] : { std::pair(keys::penelope_train_config, &config.train_config),
                                       std::pair(keys::penelope_eval_results, &config.eval_results) }) {
        if (text->size() > kMaxJsonBytes) {
            fail(std::string(name) + " has " + format_bytes(text->size()) + " of JSON, at most " +
                 format_bytes(kMaxJsonBytes) + " are allowed");
        }
    }
}

bool is_sidecar(const GgufReader & file) {
    return text_or_empty(file, keys::general_type) == "adapter" &&
           text_or_empty(file, keys::adapter_type) == k_adapter_type;
}

bool is_bundle(const GgufReader & file) {
    return text_or_empty(file, keys::general_type) == k_bundle_type;
}

SidecarConfig read_sidecar_config(const GgufReader & file) {
    if (!is_sidecar(file) && !is_bundle(file)) {
        throw Error(ErrorKind::format, file.path() + ": is not a Penelope sidecar",
                    "penelope info tells what a file is");
    }
    SidecarConfig config;
    config.version         = file.get_u32(keys::penelope_version);
    config.method          = file.get_str(keys::penelope_method);
    config.prompt_template = file.get_str(keys::penelope_prompt_template);
    config.answer_prefix   = file.get_str(keys::penelope_answer_prefix);
    config.task            = text_or_empty(file, keys::penelope_task);
    config.halt_cosine     = file.find_f32(keys::penelope_settled).value_or(0.0f);
    config.match           = text_or_empty(file, keys::penelope_match);
    config.visible_steps   = file.find_bool(keys::penelope_visible_steps);
    config.lora_alpha      = file.find_f32(keys::adapter_lora_alpha).value_or(0.0f);
    config.train_config    = text_or_empty(file, keys::penelope_train_config);
    config.eval_results    = text_or_empty(file, keys::penelope_eval_results);
    if (const MethodFormat * format = find_method_format(config.method)) {
        for (const MethodField & field : format->fields) {
            if (field.text) {
                config.*field.text = file.get_str(field.key);
                continue;
            }
            config.*field.number = file.get_u32(field.key);
            if (field.end) {
                config.*field.end = file.get_u32(field.end_key);
            }
        }
    }
    config.base.name             = text_or_empty(file, keys::penelope_base_name);
    config.base.architecture     = file.get_str(keys::penelope_base_architecture);
    config.base.block_count      = file.get_u32(keys::penelope_base_block_count);
    config.base.embedding_length = file.get_u32(keys::penelope_base_embedding_length);
    config.base.vocab_size       = file.get_u32(keys::penelope_base_vocab_size);
    config.base.tokens_sha256    = text_or_empty(file, keys::penelope_base_tokens_sha256);
    config.base.repo             = text_or_empty(file, keys::penelope_base_repo);
    config.base.file             = text_or_empty(file, keys::penelope_base_file);
    config.base.fingerprint.runs =
        file.find_i32_array(keys::penelope_base_sample_types).value_or(std::vector<int32_t>{});
    config.base.fingerprint.values = file.find_f32_array(keys::penelope_base_sample).value_or(std::vector<float>{});
    config.base.fingerprint.has_imatrix = file.find_bool(keys::penelope_base_by_importance).value_or(false);
    check_sidecar_config(config, file.path());
    return config;
}

void write_sidecar_keys(GgufWriter & writer, const SidecarConfig & config) {
    writer.set_u32(keys::penelope_version, config.version);
    writer.set_str(keys::penelope_method, config.method);
    if (const MethodFormat * format = find_method_format(config.method)) {
        for (const MethodField & field : format->fields) {
            if (field.text) {
                writer.set_str(field.key, config.*field.text);
                continue;
            }
            writer.set_u32(field.key, config.*field.number);
            if (field.end) {
                writer.set_u32(field.end_key, config.*field.end);
            }
        }
    }
    write_prompt_format(writer, prompt_format_of(config));
    if (config.visible_steps) {
        writer.set_bool(keys::penelope_visible_steps, *config.visible_steps);
    }
    writer.set_str(keys::penelope_base_name, config.base.name);
    writer.set_str(keys::penelope_base_architecture, config.base.architecture);
    writer.set_u32(keys::penelope_base_block_count, config.base.block_count);
    writer.set_u32(keys::penelope_base_embedding_length, config.base.embedding_length);
    writer.set_u32(keys::penelope_base_vocab_size, config.base.vocab_size);
    writer.set_str(keys::penelope_base_tokens_sha256, config.base.tokens_sha256);
    if (!config.base.repo.empty()) {
        writer.set_str(keys::penelope_base_repo, config.base.repo);
        writer.set_str(keys::penelope_base_file, config.base.file);
    }
    if (config.halt_cosine > 0) {
        writer.set_f32(keys::penelope_settled, config.halt_cosine);
    }
    if (!config.base.fingerprint.empty()) {
        writer.set_i32_array(keys::penelope_base_sample_types, config.base.fingerprint.runs);
        writer.set_f32_array(keys::penelope_base_sample, config.base.fingerprint.values);
        if (config.base.fingerprint.has_imatrix) {
            writer.set_bool(keys::penelope_base_by_importance, true);
        }
    }
    if (config.lora_alpha > 0) {
        writer.set_f32(keys::adapter_lora_alpha, config.lora_alpha);
    }
    if (!config.train_config.empty()) {
        writer.set_str(keys::penelope_train_config, config.train_config);
    }
    if (!config.eval_results.empty()) {
        writer.set_str(keys::penelope_eval_results, config.eval_results);
    }
}

void write_sidecar_identity(GgufWriter & writer, const SidecarConfig & config) {
    writer.set_str(keys::general_type, "adapter");
    writer.set_str(keys::general_architecture, config.base.architecture);
    writer.set_str(keys::adapter_type, k_adapter_type);
}

void remove_sidecar_keys(GgufWriter & writer) {
    for (const MethodFormat * format : method_formats()) {
        for (const MethodField & field : format->fields) {
            writer.remove(field.key);
            if (field.end) {
                writer.remove(field.end_key);
            }
        }
    }
    for (const char * key : { keys::penelope_version,
                              keys::penelope_method,
                              keys::penelope_prompt_template,
                              keys::penelope_answer_prefix,
                              keys::penelope_task,
                              keys::penelope_settled,
                              keys::penelope_match,
                              keys::penelope_visible_steps,
                              keys::penelope_base_sample,
                              keys::penelope_base_sample_types,
                              keys::penelope_base_by_importance,
                              keys::penelope_base_repo,
                              keys::penelope_base_file,
                              keys::penelope_base_name,
                              keys::penelope_base_architecture,
                              keys::penelope_base_block_count,
                              keys::penelope_base_embedding_length,
                              keys::penelope_base_vocab_size,
                              keys::penelope_base_tokens_sha256,
                              keys::adapter_lora_alpha,
                              keys::penelope_train_config,
                              keys::penelope_eval_results }) {
        writer.remove(key);
    }
}

void write_bundle_identity(GgufWriter & writer) {
    writer.set_str(keys::general_type, k_bundle_type);
}

std::vector<TensorShape> module_tensor_shapes(const SidecarConfig & config, int64_t d) {
    const MethodFormat * format = find_method_format(config.method);
    return format ? format->tensors(config, d) : std::vector<TensorShape>{};
}

bool is_lora_tensor(const std::string & name) {
    return ends_with(name, ".lora_a") || ends_with(name, ".lora_b");
}

bool is_module_tensor(const std::string & name) {
    const std::string owner = name.substr(0, name.find('.'));
    return find_method_format(owner) != nullptr;
}

void check_sidecar_tensors(const GgufReader & file, const SidecarConfig & config) {
    std::set<std::string> known;
    const auto            check_values = [&](const GgufTensor & tensor) {
        const std::string name = in_quotes(tensor.name);
        if (!all_finite(tensor)) {
            throw Error(ErrorKind::format, file.path() + ": tensor " + name + " holds a value that is not finite",
                                   "the file is damaged, or training diverged");
        }
    };
    for (const auto & shape : module_tensor_shapes(config, config.base.embedding_length)) {
        check_values(file.get_tensor(shape.name, shape.ne));
        known.insert(shape.name);
    }
    for (const auto & tensor : file.tensors()) {
        if (is_lora_tensor(tensor.name)) {
            std::string partner = tensor.name;
            partner.back()      = partner.back() == 'a' ? 'b' : 'a';
            if (!file.find_tensor(partner)) {
                throw Error(ErrorKind::format,
                            file.path() + ": tensor " + in_quotes(partner) + " is missing, its partner is there");
            }
            if (config.lora_alpha <= 0) {
                throw Error(ErrorKind::format, file.path() + ": has LoRA pairs but no " + keys::adapter_lora_alpha);
            }
            check_values(tensor);
        } else if (!known.count(tensor.name) && (is_module_tensor(tensor.name) || !is_bundle(file))) {
            throw Error(ErrorKind::format, file.path() + ": tensor " + in_quotes(tensor.name) +
                                               " does not belong into a sidecar of method " + config.method);
        }
    }
}

PromptFormat prompt_format_of(const SidecarConfig & config) {
    return { config.prompt_template, config.answer_prefix, config.task, config.match };
}

BaseInfo read_base_info(const GgufReader & base) {
    BaseInfo info;
    info.name             = text_or_empty(base, keys::general_name);
    info.architecture     = base.get_str(keys::general_architecture);
    info.block_count      = base.get_u32(keys::arch(info.architecture, keys::block_count));
    info.embedding_length = base.get_u32(keys::arch(info.architecture, keys::embedding_length));
    const uint32_t mtp    = base.find_u32(keys::arch(info.architecture, keys::nextn_predict_layers)).value_or(0);
    info.block_count -= std::min(mtp, info.block_count); // layers that only predict further tokens are not ours
    if (base.has(keys::tokenizer_tokens)) {
        const auto tokens  = base.get_str_array(keys::tokenizer_tokens);
        info.vocab_size    = uint32_t(tokens.size());
        info.tokens_sha256 = tokens_sha256(tokens);
    } else {
        info.vocab_size = base.get_u32(keys::arch(info.architecture, keys::vocab_size));
    }
    info.fingerprint = fingerprint_weights(base);
    if (const std::optional<HubPath> origin = parse_hub_path(base.path())) {
        info.repo = origin->repo;
        info.file = origin->file;
    }
    return info;
}

void check_base(const SidecarConfig & config, const BaseInfo & base, WeightMismatch changed) {
    std::vector<std::string> differences;
    const auto               compare = [&](const char * field, const std::string & mine, const std::string & theirs) {
        if (mine != theirs) {
            differences.push_back(std::string(field) + " is " + theirs + ", the sidecar needs " + mine);
        }
    };
    compare("architecture", in_quotes(config.base.architecture), in_quotes(base.architecture));
    compare("block_count", std::to_string(config.base.block_count), std::to_string(base.block_count));
    compare("embedding_length", std::to_string(config.base.embedding_length), std::to_string(base.embedding_length));
    compare("vocab_size", std::to_string(config.base.vocab_size), std::to_string(base.vocab_size));
    if (!config.base.tokens_sha256.empty() && !base.tokens_sha256.empty()) {
        compare("tokens_sha256", config.base.tokens_sha256.substr(0, 12), base.tokens_sha256.substr(0, 12));
    }
    if (!differences.empty()) {
        const std::string made_for = config.base.name.empty() ? "" : " " + in_quotes(config.base.name);
        throw Error(ErrorKind::format, "the sidecar does not fit this base: " + join(differences, "; "),
                    "use the base it was made for" + made_for);
    }
    if (config.base.fingerprint.empty()) {
        return; // of another maker: nothing to compare with
    }
    const FingerprintDifference difference = compare_fingerprints(config.base.fingerprint, base.fingerprint);
    if (!difference.same()) {
        const std::string what =
            "the weights of this base are not those the sidecar was trained on: " + difference.describe();
        if (changed == WeightMismatch::refused) {
            throw Error(ErrorKind::format, what,
                        "use that base in any type, without a merged LoRA or further training; --ignore-mismatch runs "
                        "it as it is");
        }
        log_warning(what);
    }
}

} // namespace penelope
