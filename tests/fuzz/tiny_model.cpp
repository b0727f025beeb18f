#include "tiny_model.h"

#include "arch/architecture.h"
#include "arch/qwen35/config.h"
#include "convert/convert.h"
#include "convert/describe.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "infer/session.h"
#include "sidecar/method_format.h"
#include "target.h"
#include "train/random_backbone.h"

namespace penelope::fuzz {

namespace {

constexpr int     kWidth = 32, kWide = 256, kRank = 2;
const std::string kAdapted = "blk.0.attn_q.weight";

// Numbers of no meaning, small enough that nothing overflows.
std::vector<float> numbers(const std::vector<int64_t> & ne) {
    size_t n = 1;
    for (int64_t extent : ne) {
        n *= size_t(extent);
    }
    std::vector<float> values(n);
    for (size_t i = 0; i < n; i++) {
        values[i] = float(i * 37 % 101) / 1000.0f - 0.05f;
    }
    return values;
}

void write_tensors(GgufWriter & writer, const std::vector<TensorShape> & shapes) {
    for (const TensorShape & shape : shapes) {
        writer.add_tensor(shape.name, GGML_TYPE_F32, shape.ne);
    }
    writer.begin_data();
    for (const TensorShape & shape : shapes) {
        const std::vector<float> values = numbers(shape.ne);
        writer.write_tensor(shape.name, values.data(), values.size() * sizeof(float));
    }
    writer.finish();
}

// One delta net, one layer of attention that turns half of each head.
void make_hybrid(ModelConfig & c) {
    auto own           = std::make_shared<Qwen35Config>();
    own->state_dim     = kWidth;
    own->n_key_heads   = 1;
    own->n_value_heads = 2;
    own->is_recurrent  = { true, false };
    c.arch_config      = own;
    c.n_layer          = 2;
    c.rope_dims        = kWidth / 2;
}

std::string make_backbone(const std::string & architecture) {
    RandomBackbone shape;
    ModelConfig &  c = shape.config;
    c.architecture   = architecture;
    c.name           = "tiny";
    c.n_layer        = 1;
    c.n_embd         = kWidth;
    c.n_ff           = kWidth;
    c.n_head         = 1;
    c.n_head_kv      = 1;
    c.head_dim       = kWidth;
    c.has_head_dim   = architecture != "llama";
    c.n_vocab        = 258;
    c.n_ctx_train    = 64;
    if (architecture == "qwen35") {
        make_hybrid(c);
    }
    if (architecture == "llama") {
        c.n_ff = kWide;
    }
    const std::string path = folder().file(architecture + ".gguf");
    write_random_backbone(shape, 1, path);
    return path;
}

std::vector<TensorShape> lora_shapes() {
    return { { kAdapted + ".lora_a", { kWidth, kRank } }, { kAdapted + ".lora_b", { kRank, kWidth } } };
}

std::string make_lora(const std::string &) {
    GgufWriter writer(folder().file("lora.gguf"), true);
    writer.set_str(keys::general_type, "adapter");
    writer.set_str(keys::general_architecture, "llama");
    writer.set_str(keys::adapter_type, "lora");
    writer.set_f32(keys::adapter_lora_alpha, 4.0f);
    write_tensors(writer, lora_shapes());
    return folder().file("lora.gguf");
}

std::string make_sidecar(const std::string & method) {
    SidecarConfig c;
    c.base                 = read_base_info(GgufReader::open(tiny_backbone()));
    c.method               = method;
    c.interval_start       = 0;
    c.interval_end         = 1;
    c.n_memory             = 2;
    c.n_readout            = 1;
    c.k_max                = 2;
    c.k_default            = 2;
    c.time_width           = 4;
    c.adapter_width        = 4;
    c.projection_width     = 4;
    c.lora_alpha           = 4.0f;
    const std::string path = folder().file(method + "-sidecar.gguf");
    GgufWriter        writer(path, true);
    write_sidecar_identity(writer, c);
    write_sidecar_keys(writer, c);
    std::vector<TensorShape> shapes = module_tensor_shapes(c, kWidth);
    for (const TensorShape & shape : lora_shapes()) {
        shapes.push_back(shape);
    }
    write_tensors(writer, shapes);
    return path;
}

// What `make` gives for `name`, made once.
std::string made_once(const std::string & name, std::string (*make)(const std::string &)) {
    static std::map<std::string, std::string> paths;
    const auto                                found = paths.find(name);
    return found != paths.end() ? found->second : paths[name] = make(name);
}

} // namespace

std::string tiny_backbone(const std::string & architecture) {
    return made_once(architecture, make_backbone);
}

std::string tiny_sidecar(const std::string & method) {
    return made_once(method, make_sidecar);
}

std::string tiny_lora() {
    return made_once("lora", make_lora);
}

std::vector<std::string> tiny_backbones() {
    std::vector<std::string> paths;
    for (const Architecture * architecture : architectures()) {
        paths.push_back(tiny_backbone(architecture->name));
    }
    return paths;
}

std::vector<std::string> tiny_sidecars() {
    std::vector<std::string> paths;
    for (const std::string & method : method_format_names()) {
        paths.push_back(tiny_sidecar(method));
    }
    return paths;
}

std::vector<std::string> exported(const std::vector<std::string> & files, const std::string & as,
                                  const std::string & base) {
    std::vector<std::string> directories;
    for (const std::string & file : files) {
        ExportOptions options;
        options.as        = as;
        options.in_path   = file;
        options.base_path = base;
        options.out_path  = file + "." + as;
        export_sidecar(options);
        directories.push_back(options.out_path);
    }
    return directories;
}

void compute_a_token(const LoadOptions & load) {
    SessionOptions options;
    options.n_ctx     = 48;
    options.n_threads = 1;
    Session         session(Engine::load(load), options);
    GenerateOptions generate;
    generate.n_predict = 1;
    session.generate({ 'a', 'b', 'c' }, generate);
}

void describe_and_quantize(const std::string & path) {
    QuantizeOptions quantize;
    quantize.in_path          = path;
    quantize.out_path         = folder().file("quantized.gguf");
    quantize.type             = "Q4_K_M";
    quantize.allow_requantize = true;
    quantize.force            = true;
    try_each({ [&] { describe_file(path, true); }, [&] { quantize_file(quantize); } });
}

void export_beside_base(const std::string & path, const std::string & as) {
    ExportOptions options;
    options.as        = as;
    options.in_path   = path;
    options.base_path = tiny_backbone();
    options.out_path  = folder().file("exported-" + as);
    options.force     = true;
    export_sidecar(options);
}

} // namespace penelope::fuzz
