#include "tiny_model.h"

#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "infer/session.h"
#include "latent/sidecar.h"
#include "target.h"
#include "train/new_backbone.h"

namespace penelope::fuzz {

namespace {

constexpr int     kWidth = 16, kRank = 2;
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

std::string make_backbone() {
    NewBackbone   shape;
    ModelConfig & c = shape.config;
    c.architecture  = "llama";
    c.name          = "tiny";
    c.n_layer       = 1;
    c.n_embd        = kWidth;
    c.n_ff          = kWidth;
    c.n_head        = 1;
    c.n_head_kv     = 1;
    c.head_dim      = kWidth;
    c.n_vocab       = 258;
    c.n_ctx_train   = 64;
    write_new_backbone(shape, 1, folder().file("tiny.gguf"));
    return folder().file("tiny.gguf");
}

std::vector<TensorShape> lora_shapes() {
    return { { kAdapted + ".lora_a", { kWidth, kRank } }, { kAdapted + ".lora_b", { kRank, kWidth } } };
}

std::string make_lora() {
    GgufWriter writer(folder().file("lora.gguf"), true);
    writer.set_str(keys::general_type, "adapter");
    writer.set_str(keys::general_architecture, "llama");
    writer.set_str(keys::adapter_type, "lora");
    writer.set_f32(keys::adapter_lora_alpha, 4.0f);
    write_tensors(writer, lora_shapes());
    return folder().file("lora.gguf");
}

std::string make_sidecar() {
    SidecarConfig c;
    c.base           = read_base_facts(GgufReader::open(tiny_backbone()));
    c.interval_start = 0;
    c.interval_end   = 1;
    c.n_memory       = 2;
    c.n_readout      = 1;
    c.k_max          = 2;
    c.k_default      = 2;
    c.time_length    = 4;
    c.adapter_length = 4;
    c.lora_alpha     = 4.0f;
    GgufWriter writer(folder().file("sidecar.gguf"), true);
    write_sidecar_identity(writer, c);
    write_sidecar_keys(writer, c);
    std::vector<TensorShape> shapes = module_tensor_shapes(c, kWidth);
    for (const TensorShape & shape : lora_shapes()) {
        shapes.push_back(shape);
    }
    write_tensors(writer, shapes);
    return folder().file("sidecar.gguf");
}

} // namespace

const std::string & tiny_backbone() {
    static const std::string path = make_backbone();
    return path;
}

const std::string & tiny_sidecar() {
    static const std::string path = make_sidecar();
    return path;
}

const std::string & tiny_lora() {
    static const std::string path = make_lora();
    return path;
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

} // namespace penelope::fuzz
