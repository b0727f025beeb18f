#include "convert/penelope_dir.h"

#include "base/error.h"
#include "base/format.h"
#include "sidecar/method_format.h"

#include <set>

namespace penelope {

namespace {

uint32_t get_count(const Json & object, const char * field, const std::string & path) {
    const int64_t value = json_get<int64_t>(object, field, path);
    if (value < 0 || value > INT32_MAX) {
        throw Error(ErrorKind::format, path + ": " + field + " is " + std::to_string(value));
    }
    return uint32_t(value);
}

std::string text_or(const Json & object, const char * field, const std::string & fallback, const std::string & path) {
    return json_find<std::string>(object, field, path).value_or(fallback);
}

// JSON kept as text inside the GGUF file stands as an object in the directory.
std::string embedded_json(const Json & config, const char * field) {
    return config.contains(field) && !config[field].is_null() ? dump_json(config[field]) : "";
}

// The way back, in the order of the text.
OrderedJson embedded_object(const std::string & text, const std::string & key) {
    return parse_ordered_json(text, "key 'penelope." + key + "'");
}

// A text that is left out keeps what SidecarConfig says.
void read_field(const Json & config, const MethodField & field, SidecarConfig & out, const std::string & path) {
    if (field.text) {
        out.*field.text = text_or(config, field.name, out.*field.text, path);
        return;
    }
    if (!field.end) {
        out.*field.number = get_count(config, field.name, path);
        return;
    }
    if (!config.contains(field.name) || !config[field.name].is_array() || config[field.name].size() != 2) {
        throw Error(ErrorKind::format, path + ": " + field.name + " is not a pair of layers");
    }
    const std::string start = std::string(field.name) + " start", end = std::string(field.name) + " end";
    const Json        pair = { { start, config[field.name][0] }, { end, config[field.name][1] } };
    out.*field.number      = get_count(pair, start.c_str(), path);
    out.*field.end         = get_count(pair, end.c_str(), path);
}

} // namespace

SidecarConfig parse_penelope_config(const Json & config, const BaseInfo & base, const std::string & path) {
    if (!config.is_object()) {
        throw Error(ErrorKind::format, path + ": not a JSON object");
    }
    SidecarConfig out;
    out.version         = get_count(config, "version", path);
    out.method          = json_get<std::string>(config, "method", path);
    out.prompt_template = text_or(config, "prompt_template", out.prompt_template, path);
    out.answer_prefix   = text_or(config, "answer_prefix", out.answer_prefix, path);
    out.task            = text_or(config, "task", "", path);
    out.halt_cosine     = float(json_find<double>(config, "settled", path).value_or(0.0));
    out.match           = text_or(config, "match", "", path);
    out.visible_steps   = json_find<bool>(config, "visible_steps", path);
    out.train_config    = embedded_json(config, "train_config");
    out.eval_results    = embedded_json(config, "eval_results");
    if (const MethodFormat * format = find_method_format(out.method)) {
        for (const MethodField & field : format->fields) {
            read_field(config, field, out, path);
        }
    }

    out.base = base;
    if (config.contains("base")) {
        const Json & stated = config["base"];
        if (!stated.is_object()) {
            throw Error(ErrorKind::format, path + ": base is not an object");
        }
        const auto count_or = [&](const char * field, uint32_t fallback) {
            return stated.contains(field) ? get_count(stated, field, path) : fallback;
        };
        out.base.name             = text_or(stated, "name", base.name, path);
        out.base.architecture     = text_or(stated, "architecture", base.architecture, path);
        out.base.block_count      = count_or("block_count", base.block_count);
        out.base.embedding_length = count_or("embedding_length", base.embedding_length);
        out.base.vocab_size       = count_or("vocab_size", base.vocab_size);
        out.base.tokens_sha256    = text_or(stated, "tokens_sha256", base.tokens_sha256, path);
        out.base.repo             = text_or(stated, "repo", base.repo, path);
        out.base.file             = text_or(stated, "file", base.file, path);
        check_base(out, base);
    }
    check_sidecar_config(out, path);
    return out;
}

OrderedJson penelope_config_json(const SidecarConfig & config) {
    OrderedJson out;
    out["version"] = config.version;
    out["method"]  = config.method;
    if (const MethodFormat * format = find_method_format(config.method)) {
        for (const MethodField & field : format->fields) {
            if (field.end) {
                out[field.name] = { config.*field.number, config.*field.end };
            } else if (field.text) {
                out[field.name] = config.*field.text;
            } else {
                out[field.name] = config.*field.number;
            }
        }
    }
    out["prompt_template"] = config.prompt_template;
    out["answer_prefix"]   = config.answer_prefix;
    out["task"]            = config.task;
    if (config.halt_cosine > 0) {
        out["settled"] = config.halt_cosine;
    }
    if (!config.match.empty()) {
        out["match"] = config.match;
    }
    if (config.visible_steps) {
        out["visible_steps"] = *config.visible_steps;
    }
    out["base"]["name"]             = config.base.name;
    out["base"]["architecture"]     = config.base.architecture;
    out["base"]["block_count"]      = config.base.block_count;
    out["base"]["embedding_length"] = config.base.embedding_length;
    out["base"]["vocab_size"]       = config.base.vocab_size;
    out["base"]["tokens_sha256"]    = config.base.tokens_sha256;
    if (!config.base.repo.empty()) {
        out["base"]["repo"] = config.base.repo;
        out["base"]["file"] = config.base.file;
    }
    if (!config.train_config.empty()) {
        out["train_config"] = embedded_object(config.train_config, "train.config");
    }
    if (!config.eval_results.empty()) {
        out["eval_results"] = embedded_object(config.eval_results, "eval.results");
    }
    return out;
}

std::vector<TensorJob> module_jobs(const SafetensorsReader & weights, const SidecarConfig & config) {
    std::vector<TensorJob> jobs;
    std::set<std::string>  known;
    for (const auto & shape : module_tensor_shapes(config, config.base.embedding_length)) {
        const SafetensorsTensor & source = weights.get(shape.name, { shape.ne.rbegin(), shape.ne.rend() });
        const int64_t             width  = shape.ne[0];
        TensorJob                 job{ shape.name, shape.ne, GGML_TYPE_F32 };
        job.read = [&source, width](int64_t first, int64_t n, float * out) {
            safetensors_to_f32(source, first * width, n * width, out);
        };
        jobs.push_back(std::move(job));
        known.insert(shape.name);
    }
    for (const auto & tensor : weights.tensors()) {
        if (!known.count(tensor.name)) {
            throw Error(ErrorKind::format, weights.path() + ": tensor " + in_quotes(tensor.name) +
                                               " is not part of the method " + config.method);
        }
    }
    return jobs;
}

} // namespace penelope
