#include "empty_files.h"

#include "base/error.h"
#include "convert/file_type.h"
#include "gguf/keys.h"
#include "gguf/writer.h"
#include "model/load.h"
#include "sidecar/sidecar.h"
#include "text/tokenizer_data.h"
#include "train/method_training.h"

#include <filesystem>
#include <functional>

namespace penelope::audit {

namespace {

constexpr int64_t kLoraRank = 16;

// The tensors of `facts`, of the types chosen for them.
void write_empty(const std::string & path, const std::function<void(GgufWriter &)> & write_keys,
                 const std::vector<TensorInfo> & facts, const std::vector<TypeChoice> & types) {
    GgufWriter writer(path, true);
    write_keys(writer);
    writer.begin_data();
    writer.finish();

    const gguf_context_ptr file(gguf_init_from_file(path.c_str(), { true, nullptr }));
    const ggml_context_ptr ctx  = new_tensor_context(facts.size());
    size_t                 size = 0;
    for (size_t i = 0; i < facts.size(); i++) {
        ggml_tensor * tensor = ggml_new_tensor(ctx.get(), types[i].type, int(facts[i].ne.size()), facts[i].ne.data());
        ggml_set_name(tensor, facts[i].name.c_str());
        gguf_add_tensor(file.get(), tensor);
        size += GGML_PAD(ggml_nbytes(tensor), gguf_get_alignment(file.get()));
    }
    if (!gguf_write_to_file(file.get(), path.c_str(), true)) {
        throw Error(ErrorKind::io, path + ": cannot be written");
    }
    std::filesystem::resize_file(path, gguf_get_meta_size(file.get()) + size);
}

} // namespace

ModelConfig config_of(const std::string & name) {
    for (const Architecture * one : architectures()) {
        for (const KnownShape & shape : one->shapes) {
            if (name == shape.name) {
                return shape.config;
            }
        }
    }
    throw Error(ErrorKind::usage, "shape " + name + ": not known");
}

void write_empty_backbone(const ModelConfig & c, const std::string & type, const std::string & path) {
    std::vector<TensorInfo> facts;
    for (const TensorSpec & spec : tensors_of(c)) {
        if (!spec.is_optional || (spec.gguf == "output.weight" && !c.tied)) {
            facts.push_back({ spec.gguf, spec.ne, GGML_TYPE_F32 });
        }
    }
    OverrideList   none({});
    const uint32_t n_layer = uint32_t(c.n_layer), n_head = uint32_t(c.n_head), n_head_kv = uint32_t(c.n_head_kv);
    const auto     types = choose_backbone_types(facts, parse_file_type(type), { n_layer, n_head, n_head_kv }, none);
    write_empty(
        path,
        [&](GgufWriter & writer) {
            writer.set_str(keys::general_name, c.name);
            write_model_config(writer, c);
            write_tokenizer_data(writer, byte_level_vocabulary());
        },
        facts, types);
}

void write_empty_sidecar(const std::string & backbone, const std::string & method, const std::string & type,
                         bool has_pairs, const std::string & path) {
    const GgufReader base = GgufReader::open(backbone);
    SidecarConfig    sidecar;
    sidecar.method      = method;
    sidecar.base        = read_base_info(base);
    sidecar.lora_alpha  = has_pairs ? 2 * kLoraRank : 0;
    const ModelConfig c = read_model_config(base);
    method_training(method).default_shape(sidecar, c, int(sidecar.k_max));

    std::vector<TensorInfo> facts;
    for (const TensorShape & shape : module_tensor_shapes(sidecar, c.n_embd)) {
        facts.push_back({ shape.name, shape.ne, GGML_TYPE_F32 });
    }
    for (const TensorSpec & spec : tensors_of(c)) {
        if (has_pairs && spec.role == TensorRole::projection) {
            facts.push_back({ spec.gguf + ".lora_a", { spec.ne[0], kLoraRank }, GGML_TYPE_F32 });
            facts.push_back({ spec.gguf + ".lora_b", { kLoraRank, spec.ne[1] }, GGML_TYPE_F32 });
        }
    }
    OverrideList none({});
    const auto   types = choose_adapter_types(facts, parse_file_type(type), none);
    write_empty(
        path,
        [&](GgufWriter & writer) {
            write_sidecar_identity(writer, sidecar);
            write_sidecar_keys(writer, sidecar);
        },
        facts, types);
}

} // namespace penelope::audit
