#include "model/support.h"

#include "arch/architecture.h"
#include "base/error.h"
#include "base/format.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "text/tokenizer_support.h"

namespace penelope {

std::optional<Unsupported> find_unsupported(const GgufReader & file) {
    std::vector<std::string> what, supported;
    const std::string        architecture = file.get_str(keys::general_architecture);
    if (find_architecture(architecture) == nullptr) {
        what.push_back("architecture " + in_quotes(architecture));
        supported.push_back("architectures: " + architecture_names());
    }
    if (const auto missing = missing_tokenizer(file)) {
        what.push_back(missing->what);
        supported.push_back(missing->supported);
    }
    for (const GgufTensor & tensor : file.tensors()) {
        // Numbers ggml cannot turn into F32 cannot be multiplied either.
        if (tensor.type != GGML_TYPE_F32 && ggml_get_type_traits(tensor.type)->to_float == nullptr) {
            what.push_back("type " + std::string(ggml_type_name(tensor.type)) + " of tensor " + in_quotes(tensor.name));
            supported.push_back("types: f32, f16, bf16 and ggml's quantized types");
            break;
        }
    }
    if (what.empty()) {
        return std::nullopt;
    }
    return Unsupported{ join(what, ", "), "supported are " + join(supported, "; ") };
}

void require_supported(const GgufReader & file) {
    if (const std::optional<Unsupported> found = find_unsupported(file)) {
        throw Error(ErrorKind::unsupported, file.path() + ": not supported: " + found->what, found->supported);
    }
}

} // namespace penelope
