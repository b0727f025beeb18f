#include "convert/gguf_source.h"

#include "arch/architecture.h"
#include "base/error.h"
#include "base/format.h"
#include "gguf/keys.h"

#include <cstring>

namespace penelope {

std::vector<int64_t> shape_of(const GgufTensor & tensor) {
    return { tensor.ne, tensor.ne + tensor.n_dims };
}

void read_rows_f32(const GgufTensor & tensor, int64_t first, int64_t n, float * out) {
    const size_t row_size = ggml_row_size(tensor.type, tensor.ne[0]);
    const auto * source   = static_cast<const uint8_t *>(tensor.data) + size_t(first) * row_size;
    if (tensor.type == GGML_TYPE_F32) {
        std::memcpy(out, source, size_t(n) * row_size);
        return;
    }
    const auto to_float = ggml_get_type_traits(tensor.type)->to_float;
    if (!to_float) {
        throw Error(ErrorKind::unsupported, "tensor " + in_quotes(tensor.name) + ": type " +
                                                ggml_type_name(tensor.type) + " cannot be read as numbers");
    }
    to_float(source, out, n * tensor.ne[0]);
}

BackboneShape read_backbone_shape(const GgufReader & gguf) {
    const std::string architecture = get_architecture(gguf).name;
    if (gguf.find_u32(keys::arch(architecture, keys::expert_count)).value_or(0) > 0) {
        throw Error(ErrorKind::unsupported, gguf.path() + ": mixtures of experts are not supported");
    }
    BackboneShape shape;
    shape.n_layer   = gguf.get_u32(keys::arch(architecture, keys::block_count));
    shape.n_head    = gguf.get_u32(keys::arch(architecture, keys::head_count));
    shape.n_head_kv = gguf.find_u32(keys::arch(architecture, keys::head_count_kv)).value_or(shape.n_head);
    return shape;
}

TensorJob gguf_job(const GgufReader & gguf, const GgufTensor & tensor, ggml_type type) {
    TensorJob    job{ tensor.name, shape_of(tensor), type };
    const size_t row_size = ggml_row_size(tensor.type, tensor.ne[0]);
    if (type == tensor.type) {
        job.raw = tensor.data;
    } else {
        job.f32  = tensor.type == GGML_TYPE_F32 ? static_cast<const float *>(tensor.data) : nullptr;
        job.read = [&tensor](int64_t first, int64_t n, float * out) { read_rows_f32(tensor, first, n, out); };
    }
    job.release = [&gguf, &tensor, row_size](int64_t first, int64_t n) {
        gguf.release_pages(tensor, size_t(first) * row_size, size_t(n) * row_size);
    };
    return job;
}

} // namespace penelope
