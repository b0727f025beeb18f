#include "convert/hf_pre_tokenizer.h"

#include "base/error.h"
#include "base/format.h"
#include "text/pre_tokenizer.h"

#include <vector>

namespace penelope {

namespace {

// As tokenizer.json spells them.
constexpr const char * kLlama3 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
                                 R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char * kQwen2  = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
                                 R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char * kQwen35 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
                                 R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char * kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char * kTekken = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                                 R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                                 R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr const char *kNone = "", *kDigits = "digits"; // no split before GPT-2's own; each digit apart before it

struct Definition {
    const char *              split; // a pattern, kNone or kDigits
    std::vector<const char *> names; // in GGUF; a definition that is read gets the first that fits
};

const std::vector<Definition> & definitions() {
    static const std::vector<Definition> list = {
        { kNone,
          { "gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4", "gigachat", "a.x-4.0",
            "mellum" } },
        { kDigits, { "smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b" } },
        { kLlama3,
          { "llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "dbrx",
            "smaug-bpe", "glm4", "chatglm-bpe" } },
        { kQwen2, { "qwen2", "deepseek-r1-qwen", "kormo", "stablelm2", "megrez", "hunyuan", "solar-open", "grok-2" } },
        { kQwen35, { "qwen35" } },
        { kGpt4o, { "gpt-4o", "llama4", "kanana2" } },
        { kTekken, { "tekken" } },
    };
    return list;
}

[[noreturn]] void unknown_pre_tokenizer(const std::string & path) {
    std::string names;
    for (const Definition & known : definitions()) {
        names += (names.empty() ? "" : ", ") + std::string(known.names.front());
    }
    throw Error(ErrorKind::unsupported, path + ": its pre_tokenizer is none of " + names,
                "a GGUF file cannot describe this tokenizer");
}

Json part_of(const Json & object, const char * key) {
    return object.is_object() && object.contains(key) ? object[key] : Json();
}

std::string text_in(const Json & object, const char * key) {
    const Json value = part_of(object, key);
    return value.is_string() ? value.get<std::string>() : "";
}

bool flag_in(const Json & object, const char * key, bool fallback) {
    const Json value = part_of(object, key);
    return value.is_boolean() ? value.get<bool>() : fallback;
}

// What stands before ByteLevel.
std::string split_of(const Json & pre_tokenizer, const std::string & path) {
    const Json parts = text_in(pre_tokenizer, "type") == "Sequence" ? part_of(pre_tokenizer, "pretokenizers")
                                                                    : Json::array({ pre_tokenizer });
    if (!parts.is_array() || parts.empty() || parts.size() > 2) {
        unknown_pre_tokenizer(path);
    }
    const Json &first = parts.front(), &last = parts.back();
    const bool  splits_itself = flag_in(last, "use_regex", true);
    const bool  byte_level    = text_in(last, "type") == "ByteLevel" && !flag_in(last, "add_prefix_space", true);
    if (byte_level && parts.size() == 1 && splits_itself) {
        return kNone;
    }
    if (byte_level && parts.size() == 2 && text_in(first, "type") == "Digits" &&
        flag_in(first, "individual_digits", false) && splits_itself) {
        return kDigits;
    }
    const std::string pattern = text_in(part_of(first, "pattern"), "Regex");
    // The patterns match all of a text: the pieces are the same whether matches are split off or all else is removed.
    const char * behavior = flag_in(first, "invert", false) ? "Removed" : "Isolated";
    if (!byte_level || parts.size() != 2 || splits_itself || text_in(first, "type") != "Split" || pattern.empty() ||
        text_in(first, "behavior") != behavior) {
        unknown_pre_tokenizer(path);
    }
    return pattern;
}

OrderedJson byte_level(bool use_regex) {
    return {
        { "type", "ByteLevel" }, { "add_prefix_space", false }, { "trim_offsets", true }, { "use_regex", use_regex }
    };
}

} // namespace

std::string recognize_pre_tokenizer(const Json & pre_tokenizer, bool ignore_merges, const std::string & path) {
    const std::string split = split_of(pre_tokenizer, path);
    for (const Definition & known : definitions()) {
        if (split != known.split) {
            continue;
        }
        for (const char * name : known.names) {
            if (PreTokenizer(name, path).ignores_merges() == ignore_merges) {
                return name;
            }
        }
        throw Error(ErrorKind::unsupported,
                    path + ": ignore_merges is not what the pattern " + known.names.front() + " goes with");
    }
    unknown_pre_tokenizer(path);
}

OrderedJson pre_tokenizer_json(const std::string & pre) {
    for (const Definition & known : definitions()) {
        for (const char * name : known.names) {
            if (pre != name) {
                continue;
            }
            if (known.split == kNone) {
                return byte_level(true);
            }
            const bool        digits = known.split == kDigits;
            const OrderedJson first  = digits ? OrderedJson{ { "type", "Digits" }, { "individual_digits", true } }
                                              : OrderedJson{ { "type", "Split" },
                                                            { "pattern", { { "Regex", known.split } } },
                                                            { "behavior", "Isolated" },
                                                            { "invert", false } };
            return { { "type", "Sequence" }, { "pretokenizers", OrderedJson::array({ first, byte_level(digits) }) } };
        }
    }
    throw Error(ErrorKind::unsupported, "pre-tokenizer " + in_quotes(pre) + " cannot be written as a tokenizer.json");
}

} // namespace penelope
