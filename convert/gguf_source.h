// Tensors of a GGUF file as sources of another one: copied when they keep their type, else through F32.
#pragma once

#include "convert/file_type.h"
#include "convert/tensor_stream.h"
#include "gguf/reader.h"

namespace penelope {

// `gguf` and `tensor` must outlive the job.
TensorJob gguf_job(const GgufReader & gguf, const GgufTensor & tensor, ggml_type type);

// Rows [first, first + n) as F32. Throws Error(unsupported) for types without a conversion.
void read_rows_f32(const GgufTensor & tensor, int64_t first, int64_t n, float * out);

// What the choice of types depends on. Throws Error(unsupported) for architectures and forms it was not made for.
BackboneShape read_backbone_shape(const GgufReader & gguf);

// Trailing dimensions of extent 1 left out.
std::vector<int64_t> shape_of(const GgufTensor & tensor);

} // namespace penelope
