#include "convert/hf_sentencepiece.h"

#include "base/error.h"
#include "base/format.h"
#include "text/utf8.h"
#include "text/vocabulary_check.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>

namespace penelope {

namespace {

constexpr const char * mark = "\xE2\x96\x81"; // U+2581

[[noreturn]] void unknown_form(const std::string & path, const char * what) {
    throw Error(ErrorKind::unsupported, path + ": its " + what + " is not one of SentencePiece's",
                "a GGUF file cannot describe this tokenizer");
}

std::string type_of(const Json & part) {
    return part.is_object() ? part.value("type", "") : "";
}

bool replaces_spaces(const Json & part) {
    return type_of(part) == "Replace" && part.value("content", "") == mark && part.contains("pattern") &&
           part["pattern"].is_object() && part["pattern"].value("String", "") == " ";
}

// Whether the normalizer puts a space in front.
bool normalizer_prepends(const Json & normalizer, const std::string & path) {
    if (normalizer.is_null()) {
        return false;
    }
    const Json parts    = type_of(normalizer) == "Sequence" && normalizer.contains("normalizers")
                              ? normalizer["normalizers"]
                              : Json::array({ normalizer });
    bool       prepends = false;
    for (const Json & part : parts) {
        const bool prepend = type_of(part) == "Prepend" && part.value("prepend", "") == mark;
        if (!prepend && !replaces_spaces(part)) {
            unknown_form(path, "normalizer");
        }
        prepends = prepends || prepend;
    }
    return prepends;
}

bool pre_tokenizer_prepends(const Json & pre, const std::string & path) {
    if (pre.is_null()) {
        return false;
    }
    if (type_of(pre) == "Metaspace" && pre.value("replacement", "") == mark) {
        return pre.contains("prepend_scheme") ? pre["prepend_scheme"] != "never" : pre.value("add_prefix_space", true);
    }
    // Gemma's: after the normalizer there is no space left to split at.
    if (type_of(pre) != "Split" || !pre.contains("pattern") || pre["pattern"] != Json{ { "String", " " } }) {
        unknown_form(path, "pre_tokenizer");
    }
    return false;
}

std::pair<std::string, std::string> pair_of(const Json & entry, const std::string & path) {
    if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
        return { entry[0].get<std::string>(), entry[1].get<std::string>() };
    }
    const std::string text  = entry.is_string() ? entry.get<std::string>() : "";
    const size_t      space = text.find(' ', 1);
    if (space == std::string::npos) {
        throw Error(ErrorKind::format, path + ": merge " + in_quotes(dump_json(entry)) + " is not a pair");
    }
    return { text.substr(0, space), text.substr(space + 1) };
}

} // namespace

bool is_sentencepiece_json(const Json & model) {
    return type_of(model) == "BPE" && model.contains("byte_fallback") && model["byte_fallback"] == true;
}

void read_sentencepiece_form(const Json & tokenizer, const std::string & path, TokenizerData & out) {
    const auto part      = [&](const char * name) { return tokenizer.contains(name) ? tokenizer[name] : Json(); };
    out.kind             = VocabularyKind::spm_bpe;
    out.pre              = "default";
    const bool prepended = normalizer_prepends(part("normalizer"), path);
    out.add_space_prefix = pre_tokenizer_prepends(part("pre_tokenizer"), path) || prepended;
}

void score_sentencepieces(const Json & merges, const std::string & path, TokenizerData & out) {
    if (!merges.is_array()) {
        throw Error(ErrorKind::format, path + ": 'merges' is not a list");
    }
    std::unordered_map<std::string, size_t> ids;
    for (size_t id = 0; id < out.tokens.size(); id++) {
        ids.emplace(out.tokens[id], id);
        if (out.types[id] == TokenType::normal && parse_byte_token(out.tokens[id])) {
            out.types[id] = TokenType::byte;
        }
    }
    if (out.unknown) {
        out.types[size_t(*out.unknown)] = TokenType::unknown;
    }
    const float lowest = -float(merges.size());
    out.scores.assign(out.tokens.size(), lowest); // of single characters, which nothing is joined to
    std::vector<bool> made(out.tokens.size());
    for (size_t rank = 0; rank < merges.size(); rank++) {
        const auto [left, right] = pair_of(merges[rank], path);
        const auto found         = ids.find(left + right);
        if (found == ids.end()) {
            throw Error(ErrorKind::format, path + ": merge " + std::to_string(rank) + " makes " +
                                               in_quotes(left + right) + ", which is no token");
        }
        if (!made[found->second]) {
            out.scores[found->second] = -float(rank);
            made[found->second]       = true;
        }
    }
}

std::vector<std::pair<std::string, std::string>> sentencepiece_merges(const TokenizerData & data) {
    std::unordered_map<std::string_view, size_t> ids;
    const auto                                   usable = [&](size_t id) {
        return data.types.empty() || data.types[id] == TokenType::normal || data.types[id] == TokenType::user_defined;
    };
    for (size_t id = 0; id < data.tokens.size(); id++) {
        if (usable(id)) {
            ids.emplace(data.tokens[id], id);
        }
    }
    std::vector<std::tuple<float, size_t, size_t, size_t>> found; // minus the score, the token, its parts
    for (const auto & [text, id] : ids) {
        for (size_t pos = next_utf8_unit(text, 0).size; pos < text.size(); pos += next_utf8_unit(text, pos).size) {
            const auto left = ids.find(text.substr(0, pos)), right = ids.find(text.substr(pos));
            if (left != ids.end() && right != ids.end()) {
                found.emplace_back(-data.scores[id], id, left->second, right->second);
            }
        }
    }
    std::sort(found.begin(), found.end());
    std::vector<std::pair<std::string, std::string>> merges;
    merges.reserve(found.size());
    for (const auto & [score, id, left, right] : found) {
        merges.emplace_back(data.tokens[left], data.tokens[right]);
    }
    return merges;
}

OrderedJson sentencepiece_normalizer(bool add_space_prefix) {
    const OrderedJson replace = { { "type", "Replace" }, { "pattern", { { "String", " " } } }, { "content", mark } };
    if (!add_space_prefix) {
        return replace;
    }
    const OrderedJson prepend = { { "type", "Prepend" }, { "prepend", mark } };
    return { { "type", "Sequence" }, { "normalizers", OrderedJson::array({ prepend, replace }) } };
}

OrderedJson sentencepiece_decoder(bool add_space_prefix) {
    OrderedJson parts = OrderedJson::array();
    parts.push_back({ { "type", "Replace" }, { "pattern", { { "String", mark } } }, { "content", " " } });
    parts.push_back({ { "type", "ByteFallback" } });
    parts.push_back({ { "type", "Fuse" } });
    if (add_space_prefix) {
        parts.push_back({ { "type", "Strip" }, { "content", " " }, { "start", 1 }, { "stop", 0 } });
    }
    return { { "type", "Sequence" }, { "decoders", parts } };
}

} // namespace penelope
