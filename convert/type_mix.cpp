#include "convert/type_mix.h"

namespace penelope {

namespace {

constexpr int kSharedHeads = 4;

bool place_holds(const MixRule & rule, const MixInput & facts) {
    const int i = facts.i, n = facts.n;
    switch (rule.place) {
        case MixPlace::all: return true;
        case MixPlace::first: return i < rule.count;
        case MixPlace::first_share: return i < n / rule.count;
        case MixPlace::more_bits: return i < n / 8 || i >= 7 * int64_t(n) / 8 || (i - n / 8) % 3 == 2;
        case MixPlace::shared_heads: return facts.heads_per_kv >= kSharedHeads;
    }
    return false;
}

bool when_holds(MixWhen when, bool has_importance) {
    return when == MixWhen::always || (when == MixWhen::needs_imatrix) == has_importance;
}

} // namespace

const std::vector<FileType> & file_types() {
    using R                                  = MixRole;
    using P                                  = MixPlace;
    using W                                  = MixWhen;
    static const std::vector<FileType> types = {
        { "F32", 0, GGML_TYPE_F32, {} },
        { "F16", 1, GGML_TYPE_F16, {} },
        { "BF16", 32, GGML_TYPE_BF16, {} },
        { "Q8_0", 7, GGML_TYPE_Q8_0, {} },
        { "Q4_0", 2, GGML_TYPE_Q4_0, { { R::down, P::first_share, 8, GGML_TYPE_Q4_1, W::needs_imatrix } } },
        { "Q4_1", 3, GGML_TYPE_Q4_1, {} },
        { "Q5_0", 8, GGML_TYPE_Q5_0, { { R::down, P::first_share, 8, GGML_TYPE_Q5_1, W::needs_imatrix } } },
        { "Q5_1", 9, GGML_TYPE_Q5_1, {} },
        { "Q2_K",
          10,
          GGML_TYPE_Q2_K,
          { { R::value, P::shared_heads, 0, GGML_TYPE_Q4_K },
            { R::value, P::all, 0, GGML_TYPE_Q3_K },
            { R::down, P::all, 0, GGML_TYPE_Q3_K },
            { R::attention_output, P::all, 0, GGML_TYPE_Q3_K } } },
        { "Q3_K_S", 11, GGML_TYPE_Q3_K, {} },
        { "Q3_K_M",
          12,
          GGML_TYPE_Q3_K,
          { { R::value, P::first, 2, GGML_TYPE_Q5_K },
            { R::value, P::all, 0, GGML_TYPE_Q4_K },
            { R::down, P::first_share, 16, GGML_TYPE_Q5_K },
            { R::down, P::all, 0, GGML_TYPE_Q4_K },
            { R::attention_output, P::all, 0, GGML_TYPE_Q4_K } } },
        { "Q3_K_L",
          13,
          GGML_TYPE_Q3_K,
          { { R::value, P::all, 0, GGML_TYPE_Q5_K },
            { R::down, P::all, 0, GGML_TYPE_Q5_K },
            { R::attention_output, P::all, 0, GGML_TYPE_Q5_K } } },
        { "Q4_K_S",
          14,
          GGML_TYPE_Q4_K,
          { { R::value, P::first, 4, GGML_TYPE_Q5_K }, { R::down, P::first_share, 8, GGML_TYPE_Q5_K } } },
        { "Q4_K_M",
          15,
          GGML_TYPE_Q4_K,
          { { R::value, P::more_bits, 0, GGML_TYPE_Q6_K }, { R::down, P::more_bits, 0, GGML_TYPE_Q6_K } } },
        { "Q5_K_S", 16, GGML_TYPE_Q5_K, {} },
        { "Q5_K_M",
          17,
          GGML_TYPE_Q5_K,
          { { R::value, P::more_bits, 0, GGML_TYPE_Q6_K }, { R::down, P::more_bits, 0, GGML_TYPE_Q6_K } } },
        { "Q6_K", 18, GGML_TYPE_Q6_K, {} },
        { "IQ4_NL",
          25,
          GGML_TYPE_IQ4_NL,
          { { R::value, P::shared_heads, 0, GGML_TYPE_Q5_K },
            { R::down, P::first_share, 8, GGML_TYPE_Q5_K, W::without_importance } } },
        { "IQ4_XS",
          30,
          GGML_TYPE_IQ4_XS,
          { { R::value, P::shared_heads, 0, GGML_TYPE_Q5_K },
            { R::down, P::first_share, 8, GGML_TYPE_Q5_K, W::without_importance } } },
    };
    return types;
}

ggml_type mixed_type(const FileType & file_type, const MixInput & facts) {
    for (const MixRule & rule : file_type.rules) {
        if (rule.role == facts.role && place_holds(rule, facts) && when_holds(rule.when, facts.has_importance)) {
            return rule.type;
        }
    }
    return file_type.type;
}

} // namespace penelope
