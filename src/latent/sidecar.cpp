#include "latent/sidecar.h"

#include "base/error.h"
#include "base/format.h"
#include "gguf/finite.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
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
constexpr uint32_t     k_largest_size = 1 << 24; // keeps every product of two sizes far from overflow

bool ends_with(const std::string & text, const std::string & end) {
    return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

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
    if (config.method != "penelope" && config.method != "coconut") {
        throw Error(ErrorKind::unsupported, origin + ": method " + in_quotes(config.method) + " is not known",
                    "known are 'penelope' and 'coconut'");
    }
    if (config.base.architecture.empty()) {
        fail("base.architecture is empty");
    }
    const std::pair<const char *, uint32_t> common[] = { { "k_max", config.k_max },
                                                         { "base.block_count", config.base.block_count },
                                                         { "base.embedding_length", config.base.embedding_length },
                                                         { "base.vocab_size", config.base.vocab_size } };
    for (const auto & [name, value] : common) {
        if (value == 0 || value > k_largest_size) {
            fail(std::string(name) + " is " + std::to_string(value));
        }
    }
    if (config.k_default > config.k_max) {
        fail("k_default " + std::to_string(config.k_default) + " is above k_max " + std::to_string(config.k_max));
    }
    if (config.prompt_template.find("{question}") == std::string::npos) {
        fail("prompt_template has no {question}");
    }
    if (!std::isfinite(config.lora_alpha) || config.lora_alpha < 0) {
        fail("adapter.lora.alpha is not a positive number");
    }
    if (config.method != "penelope") {
        return;
    }
    const std::pair<const char *, uint32_t> sizes[] = { { "memory_count", config.n_memory },
                                                        { "readout_count", config.n_readout },
                                                        { "time_length", config.time_length },
                                                        { "adapter_length", config.adapter_length } };
    for (const auto & [name, value] : sizes) {
        if (value == 0 || value > k_largest_size) {
            fail(std::string(name) + " is " + std::to_string(value));
        }
    }
    if (config.interval_start >= config.interval_end || config.interval_end > config.base.block_count) {
        const std::string n_layers = std::to_string(config.base.block_count);
        throw Error(ErrorKind::format,
                    origin + ": interval [" + std::to_string(config.interval_start) + ", " +
                        std::to_string(config.interval_end) + ") does not lie in the " + n_layers +
                        " layers of the base",
                    "an interval S:E needs 0 <= S < E <= " + n_layers);
    }
    if (config.transition != "gru" && config.transition != "overwrite") {
        fail("transition " + in_quotes(config.transition) + " is neither 'gru' nor 'overwrite'");
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
    config.k_max           = file.get_u32(keys::penelope_k_max);
    config.k_default       = file.get_u32(keys::penelope_k_default);
    config.prompt_template = file.get_str(keys::penelope_prompt_template);
    config.answer_prefix   = file.get_str(keys::penelope_answer_prefix);
    config.task            = text_or_empty(file, keys::penelope_task);
    config.lora_alpha      = file.find_f32(keys::adapter_lora_alpha).value_or(0.0f);
    config.train_config    = text_or_empty(file, keys::penelope_train_config);
    config.eval_results    = text_or_empty(file, keys::penelope_eval_results);
    if (config.method == "penelope") {
        config.interval_start = file.get_u32(keys::penelope_interval_start);
        config.interval_end   = file.get_u32(keys::penelope_interval_end);
        config.n_memory       = file.get_u32(keys::penelope_memory_count);
        config.n_readout      = file.get_u32(keys::penelope_readout_count);
        config.time_length    = file.get_u32(keys::penelope_time_length);
        config.adapter_length = file.get_u32(keys::penelope_adapter_length);
        config.transition     = file.get_str(keys::penelope_transition);
    }
    config.base.name             = text_or_empty(file, keys::penelope_base_name);
    config.base.architecture     = file.get_str(keys::penelope_base_architecture);
    config.base.block_count      = file.get_u32(keys::penelope_base_block_count);
    config.base.embedding_length = file.get_u32(keys::penelope_base_embedding_length);
    config.base.vocab_size       = file.get_u32(keys::penelope_base_vocab_size);
    config.base.tokens_sha256    = text_or_empty(file, keys::penelope_base_tokens_sha256);
    check_sidecar_config(config, file.path());
    return config;
}

void write_sidecar_keys(GgufWriter & writer, const SidecarConfig & config) {
    writer.set_u32(keys::penelope_version, config.version);
    writer.set_str(keys::penelope_method, config.method);
    if (config.method == "penelope") {
        writer.set_u32(keys::penelope_interval_start, config.interval_start);
        writer.set_u32(keys::penelope_interval_end, config.interval_end);
        writer.set_u32(keys::penelope_memory_count, config.n_memory);
        writer.set_u32(keys::penelope_readout_count, config.n_readout);
        writer.set_u32(keys::penelope_time_length, config.time_length);
        writer.set_u32(keys::penelope_adapter_length, config.adapter_length);
        writer.set_str(keys::penelope_transition, config.transition);
    }
    writer.set_u32(keys::penelope_k_max, config.k_max);
    writer.set_u32(keys::penelope_k_default, config.k_default);
    writer.set_str(keys::penelope_prompt_template, config.prompt_template);
    writer.set_str(keys::penelope_answer_prefix, config.answer_prefix);
    writer.set_str(keys::penelope_task, config.task);
    writer.set_str(keys::penelope_base_name, config.base.name);
    writer.set_str(keys::penelope_base_architecture, config.base.architecture);
    writer.set_u32(keys::penelope_base_block_count, config.base.block_count);
    writer.set_u32(keys::penelope_base_embedding_length, config.base.embedding_length);
    writer.set_u32(keys::penelope_base_vocab_size, config.base.vocab_size);
    writer.set_str(keys::penelope_base_tokens_sha256, config.base.tokens_sha256);
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
    for (const char * key : { keys::penelope_version,          keys::penelope_method,
                              keys::penelope_interval_start,   keys::penelope_interval_end,
                              keys::penelope_memory_count,     keys::penelope_readout_count,
                              keys::penelope_time_length,      keys::penelope_adapter_length,
                              keys::penelope_transition,       keys::penelope_k_max,
                              keys::penelope_k_default,        keys::penelope_prompt_template,
                              keys::penelope_answer_prefix,    keys::penelope_task,
                              keys::penelope_base_name,        keys::penelope_base_architecture,
                              keys::penelope_base_block_count, keys::penelope_base_embedding_length,
                              keys::penelope_base_vocab_size,  keys::penelope_base_tokens_sha256,
                              keys::adapter_lora_alpha,        keys::penelope_train_config,
                              keys::penelope_eval_results }) {
        writer.remove(key);
    }
}

void write_bundle_identity(GgufWriter & writer) {
    writer.set_str(keys::general_type, k_bundle_type);
}

std::vector<TensorShape> penelope_tensor_shapes(const SidecarConfig & config, int64_t d) {
    if (config.method == "coconut") {
        return { { "coconut.token.rows", { d, 2 } } }; // start, end
    }
    const int64_t m = config.n_memory;
    const int64_t q = config.n_readout;
    const int64_t k = config.k_max;
    const int64_t h = config.time_length;
    const int64_t b = config.adapter_length;
    return {
        { "penelope.memory.anchor", { d, m } },
        { "penelope.memory.group", { d, m } },
        { "penelope.memory.step", { d, k } },
        { "penelope.readout.anchor", { d, q } },
        { "penelope.readout.step", { d, k } },
        { "penelope.time.in.weight", { 2, h } },
        { "penelope.time.in.bias", { h } },
        { "penelope.time.out.weight", { h, 2 * d + 1 } }, // rows gamma (d), beta (d), s (1)
        { "penelope.time.out.bias", { 2 * d + 1 } },
        { "penelope.adapter.norm.weight", { d } },
        { "penelope.adapter.norm.bias", { d } },
        { "penelope.adapter.down.weight", { d, b } },
        { "penelope.adapter.down.bias", { b } },
        { "penelope.adapter.up.weight", { b, d } },
        { "penelope.adapter.up.bias", { d } },
        { "penelope.memory.gru.input.weight", { d, 3 * d } }, // rows r, z, n
        { "penelope.memory.gru.input.bias", { 3 * d } },
        { "penelope.memory.gru.hidden.weight", { d, 3 * d } },
        { "penelope.memory.gru.hidden.bias", { 3 * d } },
        { "penelope.readout.proj.norm.weight", { d } },
        { "penelope.readout.proj.norm.bias", { d } },
        { "penelope.readout.proj.weight", { d, q * d } },
        { "penelope.readout.proj.bias", { q * d } },
        { "penelope.readout.gru.input.weight", { d, 3 * d } },
        { "penelope.readout.gru.input.bias", { 3 * d } },
        { "penelope.readout.gru.hidden.weight", { d, 3 * d } },
        { "penelope.readout.gru.hidden.bias", { 3 * d } },
    };
}

bool is_lora_tensor(const std::string & name) {
    return ends_with(name, ".lora_a") || ends_with(name, ".lora_b");
}

bool is_module_tensor(const std::string & name) {
    return name.compare(0, 9, "penelope.") == 0 || name.compare(0, 8, "coconut.") == 0;
}

void check_sidecar_tensors(const GgufReader & file, const SidecarConfig & config) {
    std::set<std::string> known;
    const auto            check_values = [&](const GgufTensor & tensor) {
        if (!all_finite(tensor)) {
            throw Error(ErrorKind::format,
                                   file.path() + ": tensor " + in_quotes(tensor.name) + " holds a value that is not finite",
                                   "the file is damaged, or training diverged");
        }
    };
    for (const auto & shape : penelope_tensor_shapes(config, config.base.embedding_length)) {
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

BaseFacts read_base_facts(const GgufReader & base) {
    BaseFacts facts;
    facts.name             = text_or_empty(base, keys::general_name);
    facts.architecture     = base.get_str(keys::general_architecture);
    facts.block_count      = base.get_u32(keys::arch(facts.architecture, keys::block_count));
    facts.embedding_length = base.get_u32(keys::arch(facts.architecture, keys::embedding_length));
    const uint32_t mtp     = base.find_u32(keys::arch(facts.architecture, keys::nextn_predict_layers)).value_or(0);
    facts.block_count -= std::min(mtp, facts.block_count); // layers that only predict further tokens are not ours
    if (base.has(keys::tokenizer_tokens)) {
        const auto tokens   = base.get_str_array(keys::tokenizer_tokens);
        facts.vocab_size    = uint32_t(tokens.size());
        facts.tokens_sha256 = tokens_sha256(tokens);
    } else {
        facts.vocab_size = base.get_u32(keys::arch(facts.architecture, keys::vocab_size));
    }
    return facts;
}

void check_base(const SidecarConfig & config, const BaseFacts & base) {
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
}

} // namespace penelope
