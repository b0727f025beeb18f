// Output types: the names people give ("F16", "Q4_K_M"), and which tensor takes which ggml type under each of them.
//
// The choice per tensor follows llama.cpp's mixes (norms and vectors stay F32; the head, or the embedding when it
// serves as head, takes Q6_K or Q8_0; exceptions inside the layers: type_mix.h), so that a file made here and one made
// by llama-quantize from the same source hold the same tensors.
#pragma once

#include "convert/type_mix.h"
#include "ggml.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penelope {

// Any case. Q3_K, Q4_K and Q5_K mean their _M mixes, as for llama-quantize. Throws Error(usage) listing the names.
const FileType &         parse_file_type(std::string_view name);
ggml_type                parse_tensor_type(std::string_view name); // a plain type such as "q8_0"; no mixes
std::vector<std::string> file_type_names();

// What the choice depends on.
struct TensorInfo {
    std::string          name;
    std::vector<int64_t> ne; // ggml order
    ggml_type            source;
};

struct TypeOverride {
    std::string pattern; // a regular expression, searched in the tensor name
    ggml_type   type;
};

struct TypeChoice {
    ggml_type type;
    ggml_type wanted; // differs from `type` when the row length does not fit the blocks of the wanted type
};

// The overrides of one command. A pattern that finds nothing is a mistake of the user: require_all_used() says so.
class OverrideList {
  public:
    explicit OverrideList(const std::vector<TypeOverride> & overrides);
    ~OverrideList();

    // Sets `type` to that of the first pattern found in the name; false when there is none.
    bool find(const std::string & name, ggml_type & type);
    void require_all_used() const;

  private:
    struct Entry;
    std::vector<Entry> entries_;
};

struct BackboneShape {
    uint32_t n_layer   = 0;
    uint32_t n_head    = 0;
    uint32_t n_head_kv = 0;
};

// One choice per tensor, in the order given. Tensors that may not be quantized keep their source type.
// has_importance: the weights will be rounded with an importance matrix, which some mixes count on.
std::vector<TypeChoice> choose_backbone_types(const std::vector<TensorInfo> & tensors, const FileType & file_type,
                                              const BackboneShape & shape, OverrideList & overrides,
                                              bool has_importance = false);

// Sidecar and LoRA files: module matrices and the big projections take the type; norms, biases, anchors, step rows, the
// time network and LoRA pairs stay F32 (LoRA may become F16 or BF16, since other programs cannot merge quantized
// pairs).
std::vector<TypeChoice> choose_adapter_types(const std::vector<TensorInfo> & tensors, const FileType & file_type,
                                             OverrideList & overrides);

} // namespace penelope
