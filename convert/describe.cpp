#include "convert/describe.h"

#include "arch/config.h"
#include "base/error.h"
#include "base/format.h"
#include "convert/gguf_metadata.h"
#include "convert/gguf_source.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "model/sequence_cache.h"
#include "model/support.h"
#include "sidecar/method_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

namespace penelope {

namespace {

// Contexts people ask about; those beyond what the model was trained on are left out.
constexpr uint32_t k_contexts[] = { 512, 2048, 8192, 32768, 131072 };

std::string kind_of(const GgufReader & file) {
    if (is_bundle(file)) {
        return "bundle";
    }
    if (is_sidecar(file)) {
        return "sidecar";
    }
    const std::string type = file.find_str(keys::general_type).value_or("model");
    if (type == "adapter") {
        return file.find_str(keys::adapter_type).value_or("adapter");
    }
    return file.find_tensor("token_embd.weight") ? "backbone" : type == "model" ? "gguf" : type;
}

struct Counts {
    uint64_t                    total    = 0;
    uint64_t                    lora     = 0;
    uint64_t                    penelope = 0;
    uint64_t                    bytes    = 0;
    std::map<ggml_type, size_t> tensors; // by type
    std::map<ggml_type, size_t> sizes;   // bytes by type

    ggml_type main_type() const {
        const auto most = std::max_element(sizes.begin(), sizes.end(),
                                           [](const auto & a, const auto & b) { return a.second < b.second; });
        return most == sizes.end() ? GGML_TYPE_F32 : most->first;
    }
};

Counts count(const GgufReader & file) {
    Counts counts;
    for (const auto & tensor : file.tensors()) {
        const auto n = uint64_t(tensor.n_elements());
        if (tensor.name != "rope_freqs.weight") {
            counts.total += n;
        }
        counts.lora += is_lora_tensor(tensor.name) ? n : 0;
        counts.penelope += is_module_tensor(tensor.name) ? n : 0;
        counts.bytes += tensor.size;
        counts.tensors[tensor.type]++;
        counts.sizes[tensor.type] += tensor.size;
    }
    return counts;
}

// Text that came out of the file, on one line.
std::string shown(const std::string & text) {
    const std::string quoted_text = in_quotes(text, 200);
    return quoted_text.substr(1, quoted_text.size() - 2);
}

class Lines {
  public:
    void add(const std::string & label, const std::string & value) {
        if (!value.empty()) {
            text_ += label + std::string(label.size() < 14 ? 14 - label.size() : 1, ' ') + value + "\n";
        }
    }
    const std::string & text() const { return text_; }

  private:
    std::string text_;
};

// The hyperparameters; nullopt if this program cannot run the model, which is then said with the words of its error.
std::optional<ModelConfig> config_if_supported(const GgufReader & file, OrderedJson & json, Lines & lines) {
    try {
        require_supported(file);
        return read_model_config(file);
    } catch (const Error & e) {
        json["backbone"]["unsupported"] = e.message();
        lines.add("cannot run", e.message());
        if (!e.hint.empty()) {
            json["backbone"]["hint"] = e.hint;
            lines.add("hint", e.hint);
        }
        return std::nullopt;
    }
}

void describe_backbone(const GgufReader & file, const Counts & counts, OrderedJson & json, Lines & lines) {
    const std::optional<ModelConfig> supported = config_if_supported(file, json, lines);
    if (!supported) {
        return;
    }
    const ModelConfig & config = *supported;
    json["backbone"]           = { { "layers", config.n_layer },    { "width", config.n_embd },
                                   { "heads", config.n_head },      { "kv_heads", config.n_head_kv },
                                   { "head_dim", config.head_dim }, { "feed_forward", config.n_ff },
                                   { "vocab", config.n_vocab },     { "context", config.n_ctx_train } };
    lines.add("shape", std::to_string(config.n_layer) + " layers, width " + std::to_string(config.n_embd) + ", " +
                           std::to_string(config.n_head) + " heads (" + std::to_string(config.n_head_kv) +
                           " for keys and values) of " + std::to_string(config.head_dim) + ", feed-forward " +
                           std::to_string(config.n_ff));
    if (const auto describe = get_architecture(config).describe) {
        lines.add("layers", describe(config));
    }
    lines.add("vocabulary", std::to_string(config.n_vocab) + " tokens, " +
                                shown(file.find_str(keys::tokenizer_pre).value_or("unnamed")) + " splits" +
                                (file.has(keys::tokenizer_chat_template) ? ", with a chat template" : ""));
    lines.add("context", std::to_string(config.n_ctx_train) + " tokens in training");

    const Backbone model        = make_backbone(config);
    const size_t   per_token    = kv_bytes_per_row(model, GGML_TYPE_F16);
    const size_t   per_state    = size_t(n_recurrent(model)) * sizeof(float);
    json["memory"]["weights"]   = counts.bytes;
    json["memory"]["per_token"] = per_token;
    if (per_state > 0) {
        json["memory"]["recurrent_state"] = per_state;
        lines.add("state", format_bytes(per_state) + " per sequence in recurrent layers, whatever its length");
    }
    json["memory"]["cache_type"] = "F16";
    std::vector<std::string> contexts;
    for (const uint32_t n : k_contexts) {
        if (n <= uint32_t(config.n_ctx_train) || n == k_contexts[0]) {
            const uint64_t bytes                            = counts.bytes + uint64_t(per_token) * n + 2 * per_state;
            json["memory"]["at_context"][std::to_string(n)] = bytes;
            contexts.push_back(format_bytes(bytes) + " at " + std::to_string(n));
        }
    }
    lines.add("memory", format_bytes(counts.bytes) + " weights + " + format_bytes(per_token) +
                            " per token: " + join(contexts, ", "));
}

// {"valid": {"n": 200, "exact": [0.1, 0.925]}} -> "valid: n 200, exact 0.1 0.925"
std::string readable(const Json & value) {
    if (value.is_number_float()) {
        char text[32];
        std::snprintf(text, sizeof text, "%.4g", value.get<double>());
        return text;
    }
    if (!value.is_structured()) {
        return value.is_string() ? value.get<std::string>() : dump_json(value);
    }
    std::vector<std::string> parts;
    for (const auto & [key, item] : value.items()) {
        parts.push_back(value.is_array() ? readable(item) : key + (item.is_object() ? ": " : " ") + readable(item));
    }
    return join(parts, value.is_array() ? " " : ", ");
}

void describe_sidecar(const GgufReader & file, OrderedJson & json, Lines & lines) {
    const SidecarConfig config = read_sidecar_config(file);
    OrderedJson         out;
    out["method"] = config.method;
    out["task"]   = config.task;
    lines.add("method", config.method + (config.task.empty() ? "" : ", trained for " + shown(config.task)));
    std::string depth =
        "K = " + std::to_string(config.k_default) + " by default, up to " + std::to_string(config.k_max);
    if (const MethodFormat * format = find_method_format(config.method)) {
        for (const MethodField & field : format->fields) {
            out[field.name] = field.end    ? OrderedJson{ config.*field.number, config.*field.end }
                              : field.text ? OrderedJson(config.*field.text)
                                           : OrderedJson(config.*field.number);
        }
        out["layer_applications"] = format->layer_applications(config, int(config.k_default));
        const auto [label, text]  = format->summary(config);
        lines.add(label, text);
        depth += "; " + dump_json(out["layer_applications"]) + " layer applications before the answer";
    }
    lines.add("depth", depth);
    out["prompt_template"] = config.prompt_template;
    out["answer_prefix"]   = config.answer_prefix;
    out["lora_alpha"]      = config.lora_alpha;
    out["base"]            = { { "name", config.base.name },
                               { "architecture", config.base.architecture },
                               { "block_count", config.base.block_count },
                               { "embedding_length", config.base.embedding_length },
                               { "vocab_size", config.base.vocab_size },
                               { "tokens_sha256", config.base.tokens_sha256 },
                               { "repo", config.base.repo },
                               { "file", config.base.file } };
    lines.add("prompt", in_quotes(config.prompt_template) + ", answers after " + in_quotes(config.answer_prefix));
    lines.add(
        "fits",
        (config.base.name.empty() ? "" : shown(config.base.name) + ": ") + shown(config.base.architecture) + ", " +
            std::to_string(config.base.block_count) + " layers, width " + std::to_string(config.base.embedding_length) +
            ", " + std::to_string(config.base.vocab_size) + " tokens" +
            (config.base.tokens_sha256.empty() ? "" : " (" + shown(config.base.tokens_sha256.substr(0, 12)) + ")"));
    if (!config.base.repo.empty()) {
        lines.add("backbone", shown(config.base.repo + ":" + config.base.file));
    }
    for (const auto & [field, label, text] : { std::tuple("eval_results", "results", config.eval_results),
                                               std::tuple("train_config", "training", config.train_config) }) {
        if (!text.empty()) {
            const Json value = parse_json(text, file.path() + ": " + field);
            out[field]       = value;
            lines.add(label, shown(readable(value)));
        }
    }
    json["sidecar"] = out;
}

void describe_lora(const GgufReader & file, OrderedJson & json, Lines & lines) {
    std::set<int64_t>     ranks;
    std::set<std::string> layers;
    std::set<std::string> modules;
    for (const auto & tensor : file.tensors()) {
        if (!is_lora_tensor(tensor.name) || tensor.name.back() != 'a') {
            continue;
        }
        ranks.insert(tensor.ne[1]);
        // "blk.3.attn_q.weight.lora_a"
        const size_t layer_end  = tensor.name.compare(0, 4, "blk.") == 0 ? tensor.name.find('.', 4) : std::string::npos;
        const size_t module_end = tensor.name.rfind(".weight.");
        const bool   in_layer   = layer_end < module_end;
        if (in_layer) {
            layers.insert(tensor.name.substr(0, layer_end));
        }
        modules.insert(in_layer ? tensor.name.substr(layer_end + 1, module_end - layer_end - 1)
                                : tensor.name.substr(0, module_end));
    }
    const float alpha = file.find_f32(keys::adapter_lora_alpha).value_or(0.0f);
    json["lora"]      = { { "alpha", alpha }, { "ranks", ranks }, { "modules", modules }, { "layers", layers.size() } };
    std::vector<std::string> shown_ranks;
    for (const int64_t rank : ranks) {
        shown_ranks.push_back(std::to_string(rank));
    }
    lines.add("adapts", shown(join({ modules.begin(), modules.end() }, ", ")) + " in " + std::to_string(layers.size()) +
                            " layers, rank " + join(shown_ranks, ", ") + ", alpha " + dump_json(OrderedJson(alpha)));
    lines.add("fits", shown(file.find_str(keys::general_base_model(0, "name")).value_or("")));
}

std::string types_text(const Counts & counts) {
    std::vector<std::string> parts;
    for (const auto & [type, n] : counts.tensors) {
        parts.push_back(std::to_string(n) + " " + to_upper(ggml_type_name(type)));
    }
    return join(parts, ", ");
}

std::string tensor_table(const GgufReader & file) {
    std::string text;
    for (const auto & tensor : file.tensors()) {
        const std::string type = to_upper(ggml_type_name(tensor.type));
        text += "  " + type + std::string(type.size() < 8 ? 8 - type.size() : 1, ' ') + shown(tensor.name) + " " +
                format_shape(shape_of(tensor)) + "\n";
    }
    return text;
}

} // namespace

FileDescription describe_file(const std::string & path, bool with_tensors) {
    if (std::filesystem::is_directory(path)) {
        throw Error(ErrorKind::usage, path + ": is a directory",
                    "info takes a GGUF file; penelope convert makes one of a directory");
    }
    const GgufReader file   = GgufReader::open(path);
    const Counts     counts = count(file);
    FileDescription  out;
    Lines            lines;
    OrderedJson &    json = out.json;

    const std::string kind = kind_of(file);
    json["status"]         = "ok";
    json["path"]           = path;
    json["kind"]           = kind;
    json["architecture"]   = file.find_str(keys::general_architecture).value_or("");
    json["type"]           = to_upper(ggml_type_name(counts.main_type()));
    json["size"]           = file.file_size();
    json["files"]          = file.n_files();
    json["parameters"]     = { { "total", counts.total }, { "lora", counts.lora }, { "penelope", counts.penelope } };
    json["memory"]         = { { "weights", counts.bytes }, { "per_token", 0 } };

    const std::string name = file.find_str(keys::general_name).value_or("");
    lines.add("file", path +
                          (file.n_files() > 1 ? " and the other " + std::to_string(file.n_files() - 1) + " parts, "
                                              : std::string(", ")) +
                          format_bytes(file.file_size()));
    lines.add("kind", kind + (name.empty() ? "" : ": " + shown(name)) + " (" +
                          shown(json["architecture"].get<std::string>()) + ")");
    std::string parameters = format_count(counts.total);
    if (counts.lora + counts.penelope > 0) {
        parameters += " (" + format_count(counts.lora) + " LoRA, " + format_count(counts.penelope) + " modules)";
    }
    lines.add("parameters",
              parameters + " in " + std::to_string(file.tensors().size()) + " tensors: " + types_text(counts));
    if (kind == "backbone" || kind == "bundle") {
        describe_backbone(file, counts, json, lines);
    } else {
        if (kind == "gguf") {
            config_if_supported(file, json, lines);
        }
        lines.add("memory", format_bytes(counts.bytes) + (kind == "gguf" ? " weights" : " beside the backbone"));
    }
    if (kind == "sidecar" || kind == "bundle") {
        describe_sidecar(file, json, lines);
    }
    if (kind == "lora") {
        describe_lora(file, json, lines);
    }
    lines.add("license", shown(file.find_str(keys::general_license).value_or("")));
    json["metadata"] = metadata_of(file);

    out.text = lines.text();
    if (with_tensors) {
        OrderedJson list = OrderedJson::array();
        for (const auto & tensor : file.tensors()) {
            list.push_back({ { "name", tensor.name },
                             { "shape", shape_of(tensor) },
                             { "type", to_upper(ggml_type_name(tensor.type)) } });
        }
        json["tensors"] = std::move(list);
        out.text += "tensors\n" + tensor_table(file);
    }
    return out;
}

} // namespace penelope
