// tokenizer.json and tokenizer_config.json from the tokenizer of a GGUF file: the inverse of hf_tokenizer.cpp.
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "base/output_dir.h"
#include "convert/hf_export.h"
#include "convert/hf_pre_tokenizer.h"
#include "convert/hf_sentencepiece.h"
#include "convert/hf_tokenizer.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer_data.h"

namespace penelope {

namespace {

bool is_added(TokenType type) {
    return type == TokenType::control || type == TokenType::user_defined || type == TokenType::unknown;
}

TokenType type_of(const TokenizerData & tokenizer, size_t id) {
    return tokenizer.types.empty() ? TokenType::normal : tokenizer.types[id];
}

OrderedJson post_processor(const TokenizerData & tokenizer, bool adds_bos) {
    if (!tokenizer.bos || !adds_bos) {
        return nullptr;
    }
    const std::string & bos  = tokenizer.tokens[size_t(*tokenizer.bos)];
    const OrderedJson   mark = { { "SpecialToken", { { "id", bos }, { "type_id", 0 } } } };
    const auto          text = [](const char * id, int type) {
        return OrderedJson{ { "Sequence", { { "id", id }, { "type_id", type } } } };
    };
    OrderedJson out;
    out["type"]                = "TemplateProcessing";
    out["single"]              = OrderedJson::array({ mark, text("A", 0) });
    out["pair"]                = OrderedJson::array({ mark, text("A", 0), text("B", 1) });
    out["special_tokens"][bos] = { { "id", bos }, { "ids", { *tokenizer.bos } }, { "tokens", { bos } } };
    return out;
}

// The lists of tokens in tokenizer.json.
struct Vocabulary {
    Json        vocab = Json::object();
    OrderedJson added = OrderedJson::array();
};

// Readers number added tokens that are not in the vocabulary from its end on, so those that follow it without a gap
// stay out of it and all others have to be in both lists.
Vocabulary vocabulary(const TokenizerData & tokenizer) {
    size_t n_normal = 0;
    for (size_t id = 0; id < tokenizer.tokens.size(); id++) {
        n_normal = type_of(tokenizer, id) == TokenType::normal ? id + 1 : n_normal;
    }
    size_t tail_end = n_normal;
    while (tail_end < tokenizer.tokens.size() && is_added(type_of(tokenizer, tail_end))) {
        tail_end++;
    }
    Vocabulary out;
    for (size_t id = 0; id < tokenizer.tokens.size(); id++) {
        const TokenType     type = type_of(tokenizer, id);
        const std::string & text = tokenizer.tokens[id];
        if (is_added(type)) {
            out.added.push_back({ { "id", id },
                                  { "content", text },
                                  { "single_word", false },
                                  { "lstrip", false },
                                  { "rstrip", false },
                                  { "normalized", false },
                                  { "special", type != TokenType::user_defined } });
        }
        const bool in_tail = id >= n_normal && id < tail_end;
        if (type != TokenType::unused && !in_tail) {
            out.vocab[text] = id;
        }
    }
    return out;
}

Json merge_pairs(const TokenizerData & tokenizer) {
    Json pairs = Json::array();
    if (tokenizer.kind == VocabularyKind::spm_bpe) {
        for (const auto & [left, right] : sentencepiece_merges(tokenizer)) {
            pairs.push_back({ left, right });
        }
        return pairs;
    }
    for (const auto & merge : tokenizer.merges) {
        const size_t space = merge.find(' ', 1);
        if (space == std::string::npos) {
            throw Error(ErrorKind::format, tokenizer.source + ": merge " + in_quotes(merge) + " is not a pair");
        }
        pairs.push_back({ merge.substr(0, space), merge.substr(space + 1) });
    }
    return pairs;
}

// What is around the lists of tokens.
OrderedJson byte_bpe_form(const TokenizerData & tokenizer) {
    const PreTokenizer pre(tokenizer.pre, tokenizer.source);
    OrderedJson        json;
    json["normalizer"]     = pre.composes_text() ? OrderedJson{ { "type", "NFC" } } : OrderedJson();
    json["pre_tokenizer"]  = pre_tokenizer_json(tokenizer.pre);
    json["post_processor"] = nullptr;
    json["decoder"]        = {
               { "type", "ByteLevel" }, { "add_prefix_space", false }, { "trim_offsets", true }, { "use_regex", true }
    };
    json["model"]["type"]          = "BPE";
    json["model"]["dropout"]       = nullptr;
    json["model"]["unk_token"]     = nullptr;
    json["model"]["fuse_unk"]      = false;
    json["model"]["byte_fallback"] = false;
    json["model"]["ignore_merges"] = pre.ignores_merges();
    return json;
}

OrderedJson sentencepiece_form(const TokenizerData & tokenizer) {
    const bool  add_space = tokenizer.add_space_prefix.value_or(true);
    OrderedJson json;
    json["normalizer"]       = sentencepiece_normalizer(add_space);
    json["pre_tokenizer"]    = nullptr;
    json["post_processor"]   = nullptr;
    json["decoder"]          = sentencepiece_decoder(add_space);
    json["model"]["type"]    = "BPE";
    json["model"]["dropout"] = nullptr;
    json["model"]["unk_token"] =
        tokenizer.unknown ? OrderedJson(tokenizer.tokens[size_t(*tokenizer.unknown)]) : OrderedJson();
    json["model"]["fuse_unk"]      = true;
    json["model"]["byte_fallback"] = true;
    json["model"]["ignore_merges"] = false;
    return json;
}

std::string tokenizer_json(const TokenizerData & tokenizer, const OrderedJson & form, const OrderedJson & post) {
    const Vocabulary tokens = vocabulary(tokenizer);
    OrderedJson      json;
    json["version"]      = "1.0";
    json["truncation"]   = nullptr;
    json["padding"]      = nullptr;
    json["added_tokens"] = tokens.added;
    json.update(form);
    json["post_processor"] = post;
    // As sorted objects: an ordered one of this size would be searched from the front for every entry.
    const std::string model =
        ",\"vocab\":" + dump_json(tokens.vocab) + ",\"merges\":" + dump_json(merge_pairs(tokenizer)) + "}}";
    std::string text = dump_json(json);
    text.replace(text.size() - 2, 2, model);
    return text;
}

OrderedJson tokenizer_config(const TokenizerData & tokenizer, uint32_t n_context, bool adds_bos) {
    OrderedJson config;
    config["tokenizer_class"]                                       = "PreTrainedTokenizerFast";
    config["clean_up_tokenization_spaces"]                          = false;
    config["model_max_length"]                                      = n_context;
    config["add_bos_token"]                                         = adds_bos;
    const std::pair<const char *, std::optional<int32_t>> special[] = { { "bos_token", tokenizer.bos },
                                                                        { "eos_token", tokenizer.eos },
                                                                        { "pad_token", tokenizer.padding },
                                                                        { "unk_token", tokenizer.unknown } };
    for (const auto & [name, id] : special) {
        if (id) {
            config[name] = tokenizer.tokens[size_t(*id)];
        }
    }
    if (!tokenizer.chat_template.empty()) {
        config["chat_template"] = tokenizer.chat_template;
    }
    return config;
}

} // namespace

void write_hf_tokenizer(const TokenizerData & tokenizer, uint32_t n_context, OutputDir & out) {
    const bool scored = tokenizer.kind == VocabularyKind::spm_bpe;
    if (!scored && tokenizer.kind != VocabularyKind::byte_bpe) {
        throw Error(ErrorKind::unsupported,
                    tokenizer.source +
                        ": only byte-level BPE and SentencePiece BPE can be written as a tokenizer.json");
    }
    if (!tokenizer.types.empty() && tokenizer.types.size() != tokenizer.tokens.size()) {
        throw Error(ErrorKind::format,
                    tokenizer.source + ": its vocabulary has another number of types than of tokens");
    }
    const bool        implies_bos = scored || PreTokenizer(tokenizer.pre, tokenizer.source).implies_bos();
    const OrderedJson post        = post_processor(tokenizer, tokenizer.add_bos.value_or(implies_bos));
    const OrderedJson form        = scored ? sentencepiece_form(tokenizer) : byte_bpe_form(tokenizer);
    write_file(out.file("tokenizer.json"), tokenizer_json(tokenizer, form, post) + "\n", false);
    const OrderedJson config = tokenizer_config(tokenizer, n_context, !post.is_null());
    write_file(out.file("tokenizer_config.json"), dump_json(config, 2) + "\n", false);
}

} // namespace penelope
