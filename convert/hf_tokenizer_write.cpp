// tokenizer.json and tokenizer_config.json from the tokenizer of a GGUF file: the inverse of hf_tokenizer.cpp.
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "base/output_dir.h"
#include "convert/hf_export.h"
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

OrderedJson byte_level(bool use_regex) {
    return {
        { "type", "ByteLevel" }, { "add_prefix_space", false }, { "trim_offsets", true }, { "use_regex", use_regex }
    };
}

OrderedJson pre_tokenizer(const std::string & pre) {
    if (pre == "gpt-2") {
        return byte_level(true);
    }
    OrderedJson first;
    if (pre == "smollm") {
        first = { { "type", "Digits" }, { "individual_digits", true } };
        return { { "type", "Sequence" }, { "pretokenizers", OrderedJson::array({ first, byte_level(true) }) } };
    }
    const char * regex = split_regex(pre);
    if (!regex) {
        throw Error(ErrorKind::unsupported,
                    "pre-tokenizer " + in_quotes(pre) + " cannot be written as a tokenizer.json");
    }
    first = {
        { "type", "Split" }, { "pattern", { { "Regex", regex } } }, { "behavior", "Isolated" }, { "invert", false }
    };
    return { { "type", "Sequence" }, { "pretokenizers", OrderedJson::array({ first, byte_level(false) }) } };
}

OrderedJson post_processor(const TokenizerData & tokenizer) {
    if (!tokenizer.bos || !tokenizer.add_bos.value_or(PreTokenizer(tokenizer.pre, tokenizer.source).implies_bos())) {
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

} // namespace

void write_hf_tokenizer(const TokenizerData & tokenizer, uint32_t n_context, OutputDir & out) {
    const bool        llama3 = tokenizer.pre == "llama3" || tokenizer.pre == "llama-v3";
    const std::string pre    = llama3 ? "llama-bpe" : tokenizer.pre;
    if (!tokenizer.types.empty() && tokenizer.types.size() != tokenizer.tokens.size()) {
        throw Error(ErrorKind::format,
                    tokenizer.source + ": its vocabulary has another number of types than of tokens");
    }

    // Readers number added tokens that are not in the vocabulary from its end on, so those that follow it without a gap
    // stay out of it and all others have to be in both lists.
    size_t n_normal = 0;
    for (size_t id = 0; id < tokenizer.tokens.size(); id++) {
        n_normal = type_of(tokenizer, id) == TokenType::normal ? id + 1 : n_normal;
    }
    size_t tail_end = n_normal;
    while (tail_end < tokenizer.tokens.size() && is_added(type_of(tokenizer, tail_end))) {
        tail_end++;
    }
    Json        vocab = Json::object();
    OrderedJson added = OrderedJson::array();
    for (size_t id = 0; id < tokenizer.tokens.size(); id++) {
        const TokenType     type = type_of(tokenizer, id);
        const std::string & text = tokenizer.tokens[id];
        if (is_added(type)) {
            added.push_back({ { "id", id },
                              { "content", text },
                              { "single_word", false },
                              { "lstrip", false },
                              { "rstrip", false },
                              { "normalized", false },
                              { "special", type != TokenType::user_defined } });
        }
        const bool in_tail = id >= n_normal && id < tail_end;
        if (type != TokenType::unused && !in_tail) {
            vocab[text] = id;
        }
    }
    Json merges = Json::array();
    for (const auto & merge : tokenizer.merges) {
        const size_t space = merge.find(' ', 1);
        if (space == std::string::npos) {
            throw Error(ErrorKind::format, tokenizer.source + ": merge " + in_quotes(merge) + " is not a pair");
        }
        merges.push_back({ merge.substr(0, space), merge.substr(space + 1) });
    }

    OrderedJson json;
    json["version"]            = "1.0";
    json["truncation"]         = nullptr;
    json["padding"]            = nullptr;
    json["added_tokens"]       = added;
    json["normalizer"]         = pre == "qwen2" || pre == "qwen35" ? OrderedJson{ { "type", "NFC" } } : OrderedJson();
    json["pre_tokenizer"]      = pre_tokenizer(pre);
    json["post_processor"]     = post_processor(tokenizer);
    json["decoder"]            = byte_level(true);
    json["model"]["type"]      = "BPE";
    json["model"]["dropout"]   = nullptr;
    json["model"]["unk_token"] = nullptr;
    json["model"]["fuse_unk"]  = false;
    json["model"]["byte_fallback"] = false;
    json["model"]["ignore_merges"] = pre == "llama-bpe";
    // As sorted objects: an ordered one of this size would be searched from the front for every entry.
    std::string       text  = dump_json(json);
    const std::string model = ",\"vocab\":" + dump_json(vocab) + ",\"merges\":" + dump_json(merges) + "}}";
    text.replace(text.size() - 2, 2, model);
    write_file(out.file("tokenizer.json"), text + "\n", false);

    OrderedJson config;
    config["tokenizer_class"]                                       = "PreTrainedTokenizerFast";
    config["clean_up_tokenization_spaces"]                          = false;
    config["model_max_length"]                                      = n_context;
    config["add_bos_token"]                                         = !json["post_processor"].is_null();
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
    write_file(out.file("tokenizer_config.json"), dump_json(config, 2) + "\n", false);
}

} // namespace penelope
