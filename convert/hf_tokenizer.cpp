#include "convert/hf_tokenizer.h"

#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "convert/hf_config.h"
#include "convert/hf_pre_tokenizer.h"
#include "convert/hf_sentencepiece.h"
#include "gguf/keys.h"
#include "gguf/writer.h"
#include "text/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

namespace penelope {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr size_t k_named_templates = 64; // what follows is left out

// Files say nothing about a field by leaving it out or by null.
json field(const json & object, const char * key) {
    return object.is_object() && object.contains(key) ? object[key] : json();
}

std::string text_field(const json & object, const char * key) {
    const json value = field(object, key);
    return value.is_string() ? value.get<std::string>() : "";
}

bool flag_field(const json & object, const char * key, bool fallback) {
    const json value = field(object, key);
    return value.is_boolean() ? value.get<bool>() : fallback;
}

std::string with_visible_spaces(const std::string & part) {
    std::string out;
    for (const char c : part) {
        out += c == ' ' ? "\xc4\xa0" : std::string(1, c); // U+0120, the byte-level alphabet's space
    }
    return out;
}

std::vector<std::string> read_merges(const json & list, const std::string & path) {
    if (!list.is_array()) {
        throw Error(ErrorKind::format, path + ": 'merges' is not a list");
    }
    std::vector<std::string> merges;
    merges.reserve(list.size());
    for (const auto & entry : list) {
        if (entry.is_string() && entry.get_ref<const std::string &>().find(' ', 1) != std::string::npos) {
            merges.push_back(entry.get<std::string>());
        } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
            merges.push_back(with_visible_spaces(entry[0].get<std::string>()) + " " +
                             with_visible_spaces(entry[1].get<std::string>()));
        } else {
            throw Error(ErrorKind::format, path + ": merge " + std::to_string(merges.size()) + " is not a pair");
        }
    }
    return merges;
}

void read_byte_bpe(const json & tokenizer, const std::string & path, TokenizerData & out) {
    const json model = field(tokenizer, "model");
    out.pre =
        recognize_pre_tokenizer(field(tokenizer, "pre_tokenizer"), flag_field(model, "ignore_merges", false), path);
    const json normalizer = field(tokenizer, "normalizer");
    if (!normalizer.is_null() && text_field(normalizer, "type") != "NFC") {
        throw Error(ErrorKind::unsupported, path + ": its normalizer cannot be expressed in a GGUF file");
    }
    out.merges = read_merges(field(model, "merges"), path);
}

bool looks_special(const std::string & text) {
    return text == "<pad>" || text == "<mask>" ||
           (text.size() >= 4 && text.compare(0, 2, "<|") == 0 && text.compare(text.size() - 2, 2, "|>") == 0);
}

// The vocabulary by id while it is put together from several lists.
class Vocabulary {
  public:
    Vocabulary(uint32_t n_vocab, std::string path)
        : path_(std::move(path)), texts_(n_vocab), types_(n_vocab, TokenType::unused), set_(n_vocab) {}

    void add(const json & id_value, const std::string & text, TokenType type) {
        if (!id_value.is_number_integer() || id_value.get<int64_t>() < 0 ||
            id_value.get<int64_t>() >= int64_t(texts_.size())) {
            throw Error(ErrorKind::format, path_ + ": token " + in_quotes(text) +
                                               " has an id outside the vocabulary of " + std::to_string(texts_.size()));
        }
        const size_t id = id_value.get<size_t>();
        if (set_[id] && texts_[id] != text) {
            throw Error(ErrorKind::format, path_ + ": id " + std::to_string(id) + " is both " + in_quotes(texts_[id]) +
                                               " and " + in_quotes(text));
        }
        const auto [it, inserted] = ids_.emplace(text, id);
        if (!inserted && it->second != id) {
            throw Error(ErrorKind::format, path_ + ": token " + in_quotes(text) + " has two ids");
        }
        texts_[id] = text;
        types_[id] = type;
        set_[id]   = true;
    }

    std::optional<int32_t> find(const std::string & text) const {
        const auto it = ids_.find(text);
        return it == ids_.end() ? std::nullopt : std::optional<int32_t>(int32_t(it->second));
    }

    void move_to(TokenizerData & out) {
        for (size_t id = 0; id < texts_.size(); id++) {
            if (!set_[id]) {
                texts_[id] = "[PAD" + std::to_string(id) + "]";
                if (ids_.count(texts_[id])) {
                    throw Error(ErrorKind::format, path_ + ": token " + in_quotes(texts_[id]) + " has two ids");
                }
            }
        }
        out.tokens = std::move(texts_);
        out.types  = std::move(types_);
    }

  private:
    std::string                             path_;
    std::vector<std::string>                texts_;
    std::vector<TokenType>                  types_;
    std::vector<bool>                       set_;
    std::unordered_map<std::string, size_t> ids_;
};

void add_added_token(Vocabulary & vocabulary, const json & id, const json & token, const std::string & path) {
    const json content = field(token, "content");
    if (!content.is_string()) {
        throw Error(ErrorKind::format, path + ": an added token has no content");
    }
    const std::string text    = content.get<std::string>();
    const bool        special = flag_field(token, "special", false) || looks_special(text);
    vocabulary.add(id, text, special ? TokenType::control : TokenType::user_defined);
}

json id_from_text(const std::string & text, const std::string & path) {
    try {
        size_t     used = 0;
        const long id   = std::stol(text, &used);
        if (used == text.size()) {
            return json(id);
        }
    } catch (const std::exception &) {
    }
    throw Error(ErrorKind::format, path + ": added_tokens_decoder has the id " + in_quotes(text));
}

// "bos_token": "<s>" or {"content": "<s>", ...}
std::optional<int32_t> special_id(const Vocabulary & vocabulary, const json & config, const json & map,
                                  const char * key) {
    for (const json & source : { field(config, key), field(map, key) }) {
        const std::string text = source.is_string() ? source.get<std::string>() : text_field(source, "content");
        if (!text.empty()) {
            if (const auto id = vocabulary.find(text)) {
                return id;
            }
        }
    }
    return std::nullopt;
}

bool template_adds_bos(const json & post_processor, const std::string & bos_text) {
    const json list = text_field(post_processor, "type") == "Sequence" ? field(post_processor, "processors")
                                                                       : json::array({ post_processor });
    for (const auto & processor : list) {
        const json single = field(processor, "single");
        if (text_field(processor, "type") == "TemplateProcessing" && single.is_array() && !single.empty()) {
            return text_field(field(single[0], "SpecialToken"), "id") == bos_text;
        }
    }
    return false;
}

json read_optional_json(const fs::path & path) {
    return fs::exists(path) ? read_json_file(path.string()) : json::object();
}

void read_chat_templates(const fs::path & dir, const json & tokenizer_config, HfTokenizer & out) {
    json source = field(tokenizer_config, "chat_template");
    if (fs::exists(dir / "chat_template.jinja")) {
        const MappedFile file = MappedFile::open((dir / "chat_template.jinja").string());
        source                = std::string(reinterpret_cast<const char *>(file.data()), file.size());
    } else if (fs::exists(dir / "chat_template.json")) {
        source = field(read_json_file((dir / "chat_template.json").string()), "chat_template");
    }
    if (source.is_string()) {
        out.data.chat_template = source.get<std::string>();
        return;
    }
    if (!source.is_array()) {
        return;
    }
    for (const auto & entry : source) {
        const std::string name = text_field(entry, "name");
        const std::string text = text_field(entry, "template");
        if (name == "default") {
            out.data.chat_template = text;
        } else if (!name.empty() && out.named_templates.size() < k_named_templates) {
            out.named_templates.emplace_back(name, text);
        }
    }
}

void read_special_ids(const Vocabulary & vocabulary, const json & tokenizer_config, const json & special_map,
                      const HfConfig & config, const json & generation_config, TokenizerData & out) {
    out.bos     = special_id(vocabulary, tokenizer_config, special_map, "bos_token");
    out.eos     = special_id(vocabulary, tokenizer_config, special_map, "eos_token");
    out.padding = special_id(vocabulary, tokenizer_config, special_map, "pad_token");
    out.unknown = special_id(vocabulary, tokenizer_config, special_map, "unk_token");
    if (!out.bos) {
        out.bos = config.bos_token_id;
    }
    if (!out.padding) {
        out.padding = config.pad_token_id;
    }

    std::vector<int32_t> ends = config.eos_token_ids;
    const json           more = field(generation_config, "eos_token_id");
    for (const auto & id : more.is_array() ? more : more.is_null() ? json::array() : json::array({ more })) {
        if (id.is_number_unsigned()) {
            ends.push_back(id.get<int32_t>());
        }
    }
    if (!out.eos && !ends.empty()) {
        out.eos = ends[0];
    }
    // GGUF has one key each for the end of a turn and the end of a tool call; the rest of the list goes there by name.
    for (const int32_t id : ends) {
        if (out.eos && id == *out.eos) {
            continue;
        }
        if (vocabulary.find("<|eom_id|>") == id) {
            out.eom = id;
        } else if (!out.eot || vocabulary.find("<|eot_id|>") == id) {
            out.eot = id;
        }
    }
}

} // namespace

HfTokenizer read_hf_tokenizer(const std::string & dir, const HfConfig & config) {
    const fs::path    root = dir;
    const std::string path = (root / "tokenizer.json").string();
    if (!fs::exists(path)) {
        throw Error(ErrorKind::not_found, path + ": no such file",
                    "only tokenizers saved as tokenizer.json (\"fast\" tokenizers) can be converted");
    }
    const json tokenizer         = read_json_file(path);
    const json tokenizer_config  = read_optional_json(root / "tokenizer_config.json");
    const json special_map       = read_optional_json(root / "special_tokens_map.json");
    const json generation_config = read_optional_json(root / "generation_config.json");
    const json model             = field(tokenizer, "model");
    const json vocab             = field(model, "vocab");
    if (text_field(model, "type") != "BPE" || !vocab.is_object()) {
        throw Error(ErrorKind::unsupported, path + ": its model is not BPE");
    }

    HfTokenizer     result;
    TokenizerData & out = result.data;
    out.source          = path;
    if (is_sentencepiece_json(model)) {
        read_sentencepiece_form(tokenizer, path, out);
    } else {
        read_byte_bpe(tokenizer, path, out);
    }

    Vocabulary vocabulary(uint32_t(config.model.n_vocab), path);
    for (const auto & [text, id] : vocab.items()) {
        vocabulary.add(id, text, TokenType::normal);
    }
    for (const auto & token : field(tokenizer, "added_tokens")) {
        add_added_token(vocabulary, field(token, "id"), token, path);
    }
    const json decoder = field(tokenizer_config, "added_tokens_decoder");
    if (decoder.is_object()) {
        for (const auto & [id, token] : decoder.items()) {
            add_added_token(vocabulary, id_from_text(id, path), token, path);
        }
    }

    read_special_ids(vocabulary, tokenizer_config, special_map, config, generation_config, out);
    vocabulary.move_to(out);
    for (const auto & id : { out.bos, out.eos, out.eot, out.eom, out.padding, out.unknown }) {
        if (id && (*id < 0 || size_t(*id) >= out.tokens.size())) {
            throw Error(ErrorKind::format,
                        dir + ": special token id " + std::to_string(*id) + " is outside the vocabulary");
        }
    }
    if (out.kind == VocabularyKind::spm_bpe) {
        score_sentencepieces(field(model, "merges"), path, out);
    }
    const bool template_bos =
        out.bos && template_adds_bos(field(tokenizer, "post_processor"), out.tokens[size_t(*out.bos)]);
    out.add_bos = flag_field(tokenizer_config, "add_bos_token", template_bos);
    read_chat_templates(root, tokenizer_config, result);
    const Tokenizer readable(out); // throws where nobody could read the file that would be written
    return result;
}

void write_tokenizer_keys(GgufWriter & writer, const HfTokenizer & tokenizer) {
    write_tokenizer_data(writer, tokenizer.data);
    std::vector<std::string> names;
    for (const auto & [name, text] : tokenizer.named_templates) {
        writer.set_str(keys::tokenizer_named_chat_template(name), text);
        names.push_back(name);
    }
    if (!names.empty()) {
        writer.set_str_array(keys::tokenizer_chat_templates, names);
    }
}

} // namespace penelope
