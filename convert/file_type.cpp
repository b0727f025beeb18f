#include "convert/file_type.h"

#include "base/error.h"
#include "base/format.h"
#include "text/regex.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace penelope {

namespace {

// Plain types a single tensor can be given.
constexpr std::pair<const char *, ggml_type> k_tensor_types[] = {
    { "F32", GGML_TYPE_F32 },   { "F16", GGML_TYPE_F16 },       { "BF16", GGML_TYPE_BF16 },
    { "Q8_0", GGML_TYPE_Q8_0 }, { "Q4_0", GGML_TYPE_Q4_0 },     { "Q4_1", GGML_TYPE_Q4_1 },
    { "Q5_0", GGML_TYPE_Q5_0 }, { "Q5_1", GGML_TYPE_Q5_1 },     { "Q2_K", GGML_TYPE_Q2_K },
    { "Q3_K", GGML_TYPE_Q3_K }, { "Q4_K", GGML_TYPE_Q4_K },     { "Q5_K", GGML_TYPE_Q5_K },
    { "Q6_K", GGML_TYPE_Q6_K }, { "IQ4_NL", GGML_TYPE_IQ4_NL }, { "IQ4_XS", GGML_TYPE_IQ4_XS },
};

bool contains(const std::string & name, const char * part) {
    return name.find(part) != std::string::npos;
}

int n_dims(const std::vector<int64_t> & ne) {
    int n = int(ne.size());
    while (n > 1 && ne[size_t(n) - 1] == 1) {
        n--;
    }
    return n;
}

bool may_quantize_backbone(const TensorInfo & tensor) {
    return n_dims(tensor.ne) >= 2 && ends_with(tensor.name, "weight") && !contains(tensor.name, "_norm.weight") &&
           !contains(tensor.name, "ssm_conv1d") && !contains(tensor.name, "ffn_gate_inp.weight");
}

// What a mix may treat differently. A fused projection that holds the values counts as one.
MixRole role_of(const std::string & name) {
    if (contains(name, "attn_v.weight") || contains(name, "attn_qkv.weight")) {
        return MixRole::value;
    }
    if (contains(name, "attn_output.weight")) {
        return MixRole::attention_output;
    }
    return contains(name, "ffn_down") ? MixRole::down : MixRole::other;
}

// A type with smaller blocks when the row length is no multiple of the wanted one's.
ggml_type fitting_type(ggml_type wanted, int64_t row_length) {
    const auto fits = [&](ggml_type type) { return row_length % ggml_blck_size(type) == 0; };
    if (fits(wanted)) {
        return wanted;
    }
    ggml_type type = wanted;
    switch (wanted) {
        case GGML_TYPE_IQ4_XS: type = GGML_TYPE_IQ4_NL; break;
        case GGML_TYPE_Q2_K:
        case GGML_TYPE_Q3_K: type = GGML_TYPE_Q4_0; break;
        case GGML_TYPE_Q4_K: type = GGML_TYPE_Q5_0; break;
        case GGML_TYPE_Q5_K: type = GGML_TYPE_Q5_1; break;
        case GGML_TYPE_Q6_K: type = GGML_TYPE_Q8_0; break;
        default: break;
    }
    return fits(type) ? type : GGML_TYPE_F16;
}

TypeChoice fitted(ggml_type wanted, const TensorInfo & tensor) {
    return { fitting_type(wanted, tensor.ne[0]), wanted };
}

} // namespace

struct OverrideList::Entry {
    std::string text;
    Regex       pattern;
    ggml_type   type;
    bool        used = false;

    bool is_in(const std::string & name) const {
        try {
            return pattern.is_in(name);
        } catch (const Error & error) {
            throw Error(ErrorKind::usage,
                        "tensor type pattern " + in_quotes(text) + " cannot be searched: " + error.message());
        }
    }
};

OverrideList::OverrideList(const std::vector<TypeOverride> & overrides) {
    for (const auto & item : overrides) {
        try {
            entries_.push_back({ item.pattern, Regex::untrusted(item.pattern), item.type });
        } catch (const Error & error) {
            throw Error(ErrorKind::usage, "tensor type pattern " + in_quotes(item.pattern) +
                                              " is not a regular expression: " + error.message());
        }
    }
}

OverrideList::~OverrideList() = default;

bool OverrideList::find(const std::string & name, ggml_type & type) {
    for (auto & entry : entries_) {
        if (entry.is_in(name)) {
            entry.used = true;
            type       = entry.type;
            return true;
        }
    }
    return false;
}

void OverrideList::require_all_used() const {
    for (const auto & entry : entries_) {
        if (!entry.used) {
            throw Error(ErrorKind::usage,
                        "tensor type pattern " + in_quotes(entry.text) + " matches no quantizable tensor",
                        "names are listed by penelope info --tensors");
        }
    }
}

const FileType & parse_file_type(std::string_view name) {
    std::string wanted = to_upper(name);
    if (wanted == "Q3_K" || wanted == "Q4_K" || wanted == "Q5_K") {
        wanted += "_M";
    }
    for (const FileType & type : file_types()) {
        if (wanted == type.name) {
            return type;
        }
    }
    throw Error(ErrorKind::usage, in_quotes(name) + ": unknown type", "known are " + join(file_type_names(), ", "));
}

ggml_type parse_tensor_type(std::string_view name) {
    std::vector<std::string> names;
    for (const auto & [known, type] : k_tensor_types) {
        if (to_upper(name) == known) {
            return type;
        }
        names.push_back(known);
    }
    throw Error(ErrorKind::usage, in_quotes(name) + ": unknown tensor type", "known are " + join(names, ", "));
}

std::vector<std::string> file_type_names() {
    std::vector<std::string> names;
    for (const FileType & type : file_types()) {
        names.push_back(type.name);
    }
    return names;
}

std::vector<TypeChoice> choose_backbone_types(const std::vector<TensorInfo> & tensors, const FileType & file_type,
                                              const BackboneShape & shape, OverrideList & overrides,
                                              bool has_importance) {
    const bool quantized = ggml_is_quantized(file_type.type);
    const bool tied      = std::none_of(tensors.begin(), tensors.end(),
                                        [](const TensorInfo & tensor) { return tensor.name == "output.weight"; });
    // The one size where llama.cpp spends more on value projections: eight query heads share each of them.
    const bool is_70b       = shape.n_layer == 80 && shape.n_head != shape.n_head_kv;
    const int  heads_per_kv = int(shape.n_head / std::max(1u, shape.n_head_kv));
    const int  n_value      = int(std::count_if(tensors.begin(), tensors.end(), [](const TensorInfo & tensor) {
        return role_of(tensor.name) == MixRole::value;
    }));

    // The mixes count value and down projections in layer order, whatever the order in the file.
    std::vector<size_t> order(tensors.size());
    for (size_t i = 0; i < order.size(); i++) {
        order[i] = i;
    }
    const auto layer_of = [&](size_t i) {
        int layer = -1;
        return std::sscanf(tensors[i].name.c_str(), "blk.%d.", &layer) == 1 ? layer : -1;
    };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return layer_of(a) < layer_of(b); });

    std::vector<TypeChoice> choices(tensors.size());
    int                     i_value = 0;
    int                     i_down  = 0;
    for (const size_t i : order) {
        const TensorInfo & tensor = tensors[i];
        if (!may_quantize_backbone(tensor)) {
            choices[i] = { tensor.source, tensor.source };
            continue;
        }
        ggml_type  wanted = file_type.type;
        const bool named  = overrides.find(tensor.name, wanted);
        if (!quantized) {
            choices[i] = named ? fitted(wanted, tensor) : TypeChoice{ wanted, wanted };
            continue;
        }
        const MixRole role = role_of(tensor.name);
        if (named) {
            choices[i] = fitted(wanted, tensor);
            continue;
        }
        if (tensor.name == "output.weight" || (tied && tensor.name == "token_embd.weight")) {
            const bool fits = tensor.ne[0] % ggml_blck_size(wanted) == 0;
            wanted          = wanted == GGML_TYPE_Q8_0 || !fits ? GGML_TYPE_Q8_0 : GGML_TYPE_Q6_K;
        } else {
            int   none   = 0;
            int & i_role = role == MixRole::value ? i_value : role == MixRole::down ? i_down : none;
            wanted = mixed_type(file_type, { role, i_role++, role == MixRole::value ? n_value : int(shape.n_layer),
                                             heads_per_kv, has_importance });
            if (is_70b && role == MixRole::value && (wanted == GGML_TYPE_Q3_K || wanted == GGML_TYPE_Q4_K)) {
                wanted = GGML_TYPE_Q5_K;
            }
        }
        choices[i] = fitted(wanted, tensor);
    }
    return choices;
}

std::vector<TypeChoice> choose_adapter_types(const std::vector<TensorInfo> & tensors, const FileType & file_type,
                                             OverrideList & overrides) {
    std::vector<TypeChoice> choices;
    for (const auto & tensor : tensors) {
        const bool lora = ends_with(tensor.name, ".lora_a") || ends_with(tensor.name, ".lora_b");
        const bool matrix =
            n_dims(tensor.ne) >= 2 && ends_with(tensor.name, ".weight") &&
            (contains(tensor.name, ".gru.") || contains(tensor.name, ".proj.") || contains(tensor.name, ".adapter."));
        ggml_type wanted = tensor.source;
        if (matrix || (lora && !ggml_is_quantized(file_type.type))) {
            wanted = file_type.type;
        }
        if (matrix || lora) {
            overrides.find(tensor.name, wanted);
        }
        choices.push_back(fitted(wanted, tensor));
    }
    return choices;
}

} // namespace penelope
