#include "text/tokenizer_data.h"

#include "base/error.h"
#include "base/format.h"
#include "base/sha256.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer_support.h"

#include <algorithm>

namespace penelope {

namespace {

std::string where(const GgufReader & file, const char * key) {
    return in_quotes(file.path(), 1024) + ": key " + in_quotes(key) + ": ";
}

constexpr uint32_t no_id = UINT32_MAX; // how some writers spell "none"

struct IdKey {
    const char *           key;
    std::optional<int32_t> TokenizerData::*id;
};

constexpr IdKey id_keys[] = {
    { keys::tokenizer_bos_token_id, &TokenizerData::bos },
    { keys::tokenizer_eos_token_id, &TokenizerData::eos },
    { keys::tokenizer_eot_token_id, &TokenizerData::eot },
    { keys::tokenizer_eom_token_id, &TokenizerData::eom },
    { keys::tokenizer_unknown_token_id, &TokenizerData::unknown },
    { keys::tokenizer_padding_token_id, &TokenizerData::padding },
};

struct KindName {
    const char *   model;
    VocabularyKind kind;
};

constexpr KindName kind_names[] = {
    { "gpt2", VocabularyKind::byte_bpe },
    { "gemma4", VocabularyKind::char_bpe },
    { "llama", VocabularyKind::spm_bpe },
    { "t5", VocabularyKind::unigram },
};

VocabularyKind read_kind(const GgufReader & file) {
    const std::string model = file.get_str(keys::tokenizer_model);
    for (const KindName & known : kind_names) {
        if (model == known.model) {
            return known.kind;
        }
    }
    throw Error(ErrorKind::unsupported,
                where(file, keys::tokenizer_model) + "vocabularies of kind " + in_quotes(model) + " are not supported",
                "supported: gpt2 (byte-level BPE), llama and gemma4 (SentencePiece BPE), t5 (unigram)");
}

bool has_merges(VocabularyKind kind) {
    return kind == VocabularyKind::byte_bpe || kind == VocabularyKind::char_bpe;
}

} // namespace

std::vector<std::string> tokenizer_models() {
    std::vector<std::string> names;
    for (const KindName & known : kind_names) {
        names.emplace_back(known.model);
    }
    return names;
}

std::optional<MissingTokenizer> missing_tokenizer(const GgufReader & file) {
    const std::string model = file.find_str(keys::tokenizer_model).value_or("");
    if (model.empty()) {
        return std::nullopt;
    }
    const auto known = std::find_if(std::begin(kind_names), std::end(kind_names),
                                    [&](const KindName & kind) { return model == kind.model; });
    if (known == std::end(kind_names)) {
        return MissingTokenizer{ "tokenizer " + in_quotes(model), "tokenizers: " + join(tokenizer_models(), ", ") };
    }
    const std::string              pre   = file.find_str(keys::tokenizer_pre).value_or("");
    const std::vector<std::string> names = pre_tokenizer_names();
    if (has_merges(known->kind) && !pre.empty() && std::find(names.begin(), names.end(), pre) == names.end()) {
        return MissingTokenizer{ "pre-tokenizer " + in_quotes(pre), "pre-tokenizers: " + join(names, ", ") };
    }
    return std::nullopt;
}

TokenizerData read_tokenizer_data(const GgufReader & file) {
    TokenizerData data;
    data.kind   = read_kind(file);
    data.source = file.path();
    data.pre    = file.find_str(keys::tokenizer_pre).value_or("");
    data.tokens = file.get_str_array(keys::tokenizer_tokens);
    if (has_merges(data.kind)) {
        data.merges = file.get_str_array(keys::tokenizer_merges);
    } else {
        // Where SentencePiece models leave them out.
        data.bos     = 1;
        data.eos     = data.kind == VocabularyKind::unigram ? 1 : 2;
        data.unknown = data.kind == VocabularyKind::unigram ? 2 : 0;
        data.scores  = file.find_f32_array(keys::tokenizer_scores).value_or(std::vector<float>());
    }
    if (data.kind == VocabularyKind::unigram) {
        if (file.has(keys::tokenizer_charsmap)) {
            throw Error(ErrorKind::unsupported,
                        where(file, keys::tokenizer_charsmap) +
                            "texts would have to be normalized by this table, which we do not do",
                        "unigram vocabularies without a table are supported");
        }
        data.bos.reset();
        data.merges_spaces = file.find_bool(keys::tokenizer_remove_spaces).value_or(false);
    }
    data.add_space_prefix = file.find_bool(keys::tokenizer_add_space_prefix);
    if (file.has(keys::tokenizer_token_type)) {
        const std::vector<int32_t> types = file.get_i32_array(keys::tokenizer_token_type);
        data.types.reserve(types.size());
        for (const int32_t type : types) {
            data.types.push_back(static_cast<TokenType>(type));
        }
        if (data.types.empty() && !data.tokens.empty()) {
            throw Error(ErrorKind::format, where(file, keys::tokenizer_token_type) + "no entries for " +
                                               std::to_string(data.tokens.size()) + " tokens");
        }
    }
    for (const IdKey & entry : id_keys) {
        const std::optional<uint32_t> id = file.find_u32(entry.key);
        if (!id || *id == no_id) {
            continue;
        }
        if (*id >= data.tokens.size()) {
            throw Error(ErrorKind::format, where(file, entry.key) + std::to_string(*id) +
                                               " is outside the vocabulary of " + std::to_string(data.tokens.size()) +
                                               " tokens");
        }
        data.*entry.id = static_cast<int32_t>(*id);
    }
    data.add_bos       = file.find_bool(keys::tokenizer_add_bos_token);
    data.chat_template = file.find_str(keys::tokenizer_chat_template).value_or("");
    return data;
}

void write_tokenizer_data(GgufWriter & file, const TokenizerData & data) {
    for (const KindName & known : kind_names) {
        if (known.kind == data.kind) {
            file.set_str(keys::tokenizer_model, known.model);
        }
    }
    file.set_str(keys::tokenizer_pre, data.pre.empty() ? "default" : data.pre);
    file.set_str_array(keys::tokenizer_tokens, data.tokens);
    std::vector<int32_t> types(data.tokens.size(), static_cast<int32_t>(TokenType::normal));
    for (size_t i = 0; i < data.types.size() && i < types.size(); i++) {
        types[i] = static_cast<int32_t>(data.types[i]);
    }
    file.set_i32_array(keys::tokenizer_token_type, types);
    if (has_merges(data.kind)) {
        file.set_str_array(keys::tokenizer_merges, data.merges);
    }
    if (!data.scores.empty()) {
        file.set_f32_array(keys::tokenizer_scores, data.scores);
    }
    if (data.add_space_prefix) {
        file.set_bool(keys::tokenizer_add_space_prefix, *data.add_space_prefix);
    }
    if (data.merges_spaces) {
        file.set_bool(keys::tokenizer_remove_spaces, true);
    }
    for (const IdKey & entry : id_keys) {
        if (data.*entry.id) {
            file.set_u32(entry.key, static_cast<uint32_t>(*(data.*entry.id)));
        }
    }
    if (data.add_bos) {
        file.set_bool(keys::tokenizer_add_bos_token, *data.add_bos);
    }
    if (!data.chat_template.empty()) {
        file.set_str(keys::tokenizer_chat_template, data.chat_template);
    }
}

TokenizerData byte_level_vocabulary() {
    TokenizerData data;
    data.source = "byte-level vocabulary";
    data.pre    = "gpt-2";
    for (int b = 0; b < 256; b++) {
        data.tokens.push_back(bytes_to_alphabet(std::string(1, static_cast<char>(b))));
    }
    data.types.assign(256, TokenType::normal);
    data.bos = 256;
    data.eos = 257;
    for (const char * special : { "<|begin_of_text|>", "<|end_of_text|>" }) {
        data.tokens.push_back(special);
        data.types.push_back(TokenType::control);
    }
    data.add_bos = true;
    return data;
}

std::string tokens_sha256(const std::vector<std::string> & tokens) {
    Sha256 hash;
    for (const std::string & token : tokens) {
        hash.add(std::string_view(token.c_str(), token.size() + 1));
    }
    return hash.hex();
}

} // namespace penelope
