#include "model/lora.h"

#include "base/error.h"
#include "base/format.h"
#include "gguf/keys.h"

#include <cmath>
#include <cstring>

namespace penelope {

namespace {

const std::string kA = ".lora_a";
const std::string kB = ".lora_b";

// Concatenates the ranks of two pairs: A = [A1; A2], B = [B1, B2].
void append(HostLoraPair & into, const HostLoraPair & more) {
    if (into.rank == 0) {
        into = more;
        return;
    }
    std::vector<float> b;
    for (int64_t row = 0; row < into.n_out; row++) {
        b.insert(b.end(), into.b.begin() + row * into.rank, into.b.begin() + (row + 1) * into.rank);
        b.insert(b.end(), more.b.begin() + row * more.rank, more.b.begin() + (row + 1) * more.rank);
    }
    into.b = std::move(b);
    into.a.insert(into.a.end(), more.a.begin(), more.a.end());
    into.rank += more.rank;
}

} // namespace

std::vector<float> read_f32(const GgufReader & file, const GgufTensor & tensor) {
    return read_rows(file, tensor, 0, tensor.n_elements() / tensor.ne[0]);
}

std::vector<float> read_rows(const GgufReader & file, const GgufTensor & tensor, int64_t first, int64_t n) {
    const size_t       row_size = ggml_row_size(tensor.type, tensor.ne[0]);
    const char *       source   = static_cast<const char *>(tensor.data) + size_t(first) * row_size;
    std::vector<float> values(size_t(n * tensor.ne[0]));
    if (tensor.type == GGML_TYPE_F32) {
        std::memcpy(values.data(), source, size_t(n) * row_size);
    } else {
        const auto to_float = ggml_get_type_traits(tensor.type)->to_float;
        if (!to_float) {
            throw Error(ErrorKind::unsupported, file.path() + ": tensor " + tensor.name + " has type " +
                                                    ggml_type_name(tensor.type) +
                                                    ", expected one that converts to F32");
        }
        to_float(source, values.data(), int64_t(values.size()));
    }
    for (float value : values) {
        if (!std::isfinite(value)) {
            throw Error(ErrorKind::format,
                        file.path() + ": tensor " + tensor.name + " holds a value that is not finite",
                        "the file is damaged or its training diverged");
        }
    }
    return values;
}

void add_lora(HostLora & lora, const GgufReader & file, float scale, bool allow_extra_tensors) {
    const float alpha = file.find_f32(keys::adapter_lora_alpha).value_or(0.0f);
    for (const GgufTensor & a : file.tensors()) {
        if (ends_with(a.name, kB)) {
            const std::string partner = a.name.substr(0, a.name.size() - kB.size()) + kA;
            if (!file.find_tensor(partner)) {
                throw Error(ErrorKind::format,
                            file.path() + ": tensor " + partner + " is missing, expected beside " + a.name);
            }
            continue;
        }
        if (!ends_with(a.name, kA)) {
            if (allow_extra_tensors) {
                continue;
            }
            throw Error(ErrorKind::format,
                        file.path() + ": tensor " + a.name +
                            " is no part of a LoRA, expected names ending in .lora_a or .lora_b",
                        "penelope info tells what a file is");
        }
        const std::string  base = a.name.substr(0, a.name.size() - kA.size());
        const GgufTensor * b    = file.find_tensor(base + kB);
        if (!b) {
            throw Error(ErrorKind::format,
                        file.path() + ": tensor " + base + kB + " is missing, expected beside " + a.name);
        }
        HostLoraPair pair;
        pair.n_in  = a.ne[0];
        pair.rank  = a.ne[1];
        pair.n_out = b->ne[1];
        if (a.n_elements() != pair.n_in * pair.rank || b->ne[0] != pair.rank ||
            b->n_elements() != pair.rank * pair.n_out) {
            throw Error(ErrorKind::format, file.path() + ": tensors " + a.name + " and " + b->name +
                                               " do not fit together, expected [n_in, rank] and [rank, n_out]");
        }
        pair.a             = read_f32(file, a);
        pair.b             = read_f32(file, *b);
        const float factor = scale * (alpha != 0.0f ? alpha / float(pair.rank) : 1.0f);
        for (float & value : pair.b) {
            value *= factor;
        }
        HostLoraPair & all = lora[base];
        if (all.rank && (all.n_in != pair.n_in || all.n_out != pair.n_out)) {
            throw Error(ErrorKind::format,
                        file.path() + ": tensor " + a.name + " does not fit the other adapter for " + base);
        }
        append(all, pair);
    }
}

} // namespace penelope
