// The file types people name, and the tensors to which each of them gives more bits than to the rest.
//
// A file type is a plain ggml type with a list of exceptions by the role of a tensor. The facts are those of
// llama.cpp's mixes, so that a file made here holds the same tensors as one made by llama-quantize from the same
// source.
#pragma once

#include "ggml.h"

#include <cstdint>
#include <vector>

namespace penelope {

// Tensors of a layer that a mix may treat differently.
enum class MixRole { value, attention_output, down, other };

// Which tensors of a role, counted in layer order.
enum class MixPlace {
    all,
    first,        // the first `count` of them
    first_share,  // the first 1/count of them
    more_bits,    // the first and last eighth and every third one between
    shared_heads, // all, where at least four query heads share a key head
};

// Some mixes trust an importance matrix to protect what they would otherwise give more bits, others need the protection
// only then.
enum class MixWhen { always, without_importance, needs_imatrix };

struct MixRule {
    MixRole   role;
    MixPlace  place;
    int       count; // of `first` and `first_share`
    ggml_type type;
    MixWhen   when = MixWhen::always;
};

struct FileType {
    const char *         name;   // canonical, upper case
    uint32_t             number; // value of general.file_type
    ggml_type            type;   // of most tensors
    std::vector<MixRule> rules;  // the first that fits a tensor decides
};

const std::vector<FileType> & file_types();

// What a rule looks at.
struct MixInput {
    MixRole role;
    int     i, n; // which of the tensors of this role, of how many
    int     heads_per_kv;
    bool    has_importance;
};

// The type of a tensor with these facts.
ggml_type mixed_type(const FileType & file_type, const MixInput & facts);

} // namespace penelope
