#include "text/pre_tokenizer.h"

#include "base/error.h"
#include "base/format.h"
#include "gguf/keys.h"
#include "text/regex.h"
#include "text/tokenizer_support.h"

#include <array>
#include <utility>

namespace penelope {

namespace {

// Unicode's White_Space, as the content of a character class; written @ in the patterns. PCRE2's own \s adds U+180E.
constexpr std::string_view white_space =
    R"(\x{09}-\x{0d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

constexpr const char * llama3_pattern =
    R"('(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}++|\p{N}{1,3}+| ?[^@\p{L}\p{N}]++[\r\n]*+)"
    R"(|[@]*[\r\n]+|[@]+(?![^@])|[@]+)";

constexpr const char * qwen2_pattern =
    R"('(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}++|\p{N}| ?[^@\p{L}\p{N}]++[\r\n]*+)"
    R"(|[@]*[\r\n]+|[@]+(?![^@])|[@]+)";

constexpr const char * qwen35_pattern =
    R"('(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]++|\p{N})"
    R"(| ?[^@\p{L}\p{M}\p{N}]++[\r\n]*+|[@]*[\r\n]+|[@]+(?![^@])|[@]+)";

constexpr const char * gpt2_pattern =
    R"('(?:[stmd]|re|ve|ll)| ?\p{L}++| ?\p{N}++| ?[^@\p{L}\p{N}]++|[@]+(?![^@])|[@]+)";

// Each digit alone, then gpt-2's pattern on the text between digits: for that pattern a digit ends the text.
constexpr const char * smollm_pattern =
    R"(\p{N}|'(?:[stmd]|re|ve|ll)| ?\p{L}++| ?[^@\p{L}\p{N}]++|[@]+(?![^@\p{N}])|[@]+)";

constexpr const char * deepseek_llm_letters =
    R"([@]?[A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293}\x{295}-\x{2af})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c}\x{38e}-\x{3a1})"
    R"(\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}\x{10a0}-\x{10c5}\x{13a0}-\x{13f5})"
    R"(\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-)"
    R"(\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57})"
    R"(\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4})"
    R"(\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-)"
    R"(\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-)"
    R"(\x{212d}\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-)"
    R"(\x{2c7b}\x{2c7e}-\x{2ce4}\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722})"
    R"(-\x{a76f}\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17})"
    R"(\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80})"
    R"(-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943}]++)";

constexpr const char * deepseek_llm_punctuation =
    R"([@]?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]++)";

constexpr const char * deepseek_cjk = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]++)";

constexpr const char * gpt4o_pattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(('([sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(('([sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?)"
    R"(|\p{N}{1,3}+| ?[^@\p{L}\p{N}]++[\r\n/]*+|[@]*[\r\n]+|[@]+(?![^@])|[@]+)";

constexpr const char * tekken_pattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^@\p{L}\p{N}]++[\r\n/]*+|[@]*[\r\n]+|[@]+(?![^@])|[@]+)";

constexpr const char * deepseek_v3_pattern =
    R"([!-/:-\x{40}\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]++[\r\n]*+)"
    R"(|[@]*[\r\n]+|[@]+(?![^@])|[@]+)";

// Whole lines; spaces have become U+2581 before.
constexpr const char * lines_pattern = R"([^\n]++|\n++)";

struct Entry {
    const char *                pre;
    std::array<const char *, 6> patterns;
    bool                        ignores_merges;
    bool                        implies_bos;
    bool                        composes_text;
};

// The names of llama.cpp's list.
constexpr Entry entries[] = {
    { "llama-bpe", { llama3_pattern }, true, true, false },
    { "llama3", { llama3_pattern }, true, true, false },
    { "llama-v3", { llama3_pattern }, true, true, false },
    { "falcon3", { llama3_pattern }, true, true, false },
    { "falcon-h1", { llama3_pattern }, true, true, false },
    { "pixtral", { llama3_pattern }, true, true, false },
    { "midm-2.0", { llama3_pattern }, true, true, false },
    { "lfm2", { llama3_pattern }, true, true, false },
    { "gpt-2", { gpt2_pattern }, false, false, false },
    { "phi-2", { gpt2_pattern }, false, false, false },
    { "mpt", { gpt2_pattern }, false, false, false },
    { "olmo", { gpt2_pattern }, false, false, false },
    { "jais", { gpt2_pattern }, false, false, false },
    { "trillion", { gpt2_pattern }, false, false, false },
    { "granite-docling", { gpt2_pattern }, false, false, false },
    { "exaone4", { gpt2_pattern }, false, false, false },
    { "gigachat", { gpt2_pattern }, false, false, false },
    { "a.x-4.0", { gpt2_pattern }, false, false, false },
    { "mellum", { gpt2_pattern }, false, false, false },
    { "smollm", { smollm_pattern }, false, false, false },
    { "starcoder", { smollm_pattern }, false, false, false },
    { "refact", { smollm_pattern }, false, false, false },
    { "command-r", { smollm_pattern }, false, false, false },
    { "codeshell", { smollm_pattern }, false, false, false },
    { "exaone", { smollm_pattern }, false, false, false },
    { "minerva-7b", { smollm_pattern }, false, false, false },
    { "qwen2", { qwen2_pattern }, false, false, true },
    { "deepseek-r1-qwen", { qwen2_pattern }, false, false, true },
    { "kormo", { qwen2_pattern }, false, false, true },
    { "stablelm2", { qwen2_pattern }, false, false, false },
    { "megrez", { qwen2_pattern }, false, false, false },
    { "hunyuan", { qwen2_pattern }, false, false, false },
    { "solar-open", { qwen2_pattern }, false, false, false },
    { "grok-2", { qwen2_pattern }, false, false, false },
    { "qwen35", { qwen35_pattern }, false, false, true },
    { "dbrx", { llama3_pattern }, false, false, false },
    { "smaug-bpe", { llama3_pattern }, false, false, false },
    { "glm4", { llama3_pattern }, false, false, false },
    { "chatglm-bpe", { llama3_pattern }, false, false, false },
    { "gpt-4o", { gpt4o_pattern }, false, false, false },
    { "llama4", { gpt4o_pattern }, false, false, false },
    { "kanana2", { gpt4o_pattern }, false, false, false },
    { "tekken", { tekken_pattern }, true, true, false },
    { "deepseek-llm",
      { R"([\r\n])", deepseek_llm_letters, deepseek_llm_punctuation, R"([@]+\z)", deepseek_cjk, R"(\p{N}++)" },
      false,
      false,
      false },
    { "deepseek-coder",
      { R"([\r\n])", R"([@]?\p{L}++)", R"([@]?\p{P}++)", deepseek_cjk, R"(\p{N})" },
      false,
      false,
      false },
    { "deepseek-v3",
      { R"(\p{N}{1,3}+)", R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]++)", deepseek_v3_pattern },
      false,
      false,
      false },
    { "hunyuan-dense",
      { R"(\p{N}{1,3}+)", R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]++)", deepseek_v3_pattern },
      false,
      false,
      false },
    { "joyai-llm",
      { R"(\p{N}{1,3}+)", R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]++)", deepseek_v3_pattern },
      false,
      false,
      false },
    { "falcon", { R"([\p{P}$+<=>^~|`]++)", gpt2_pattern, "[0-9]{3}" }, false, false, false },
    { "gemma4", { lines_pattern }, false, false, false },
    { "default", { R"([\p{P}$+<=>^~|]++)", gpt2_pattern, R"(\p{N}++)", "[0-9]{3}" }, false, false, false },
};

std::string expand(std::string_view pattern) {
    std::string out;
    for (const char c : pattern) {
        c == '@' ? out.append(white_space) : out.append(1, c);
    }
    return out;
}

} // namespace

std::vector<std::string> pre_tokenizer_names() {
    std::vector<std::string> names;
    for (const Entry & entry : entries) {
        names.emplace_back(entry.pre);
    }
    return names;
}

PreTokenizer::PreTokenizer(std::string_view pre, const std::string & source, bool has_merges) {
    const std::string_view wanted = pre.empty() ? "default" : pre;
    for (const Entry & entry : entries) {
        if (wanted != entry.pre) {
            continue;
        }
        for (const char * pattern : entry.patterns) {
            if (pattern && (has_merges || entry.ignores_merges)) {
                patterns_.push_back(std::make_shared<const Regex>(expand(pattern)));
            }
        }
        ignores_merges_ = entry.ignores_merges;
        implies_bos_    = entry.implies_bos;
        composes_text_  = entry.composes_text;
        is_fallback_    = wanted == "default";
        return;
    }
    throw Error(ErrorKind::unsupported,
                in_quotes(source, 1024) + ": key " + in_quotes(keys::tokenizer_pre) + ": unknown pre-tokenizer " +
                    in_quotes(pre),
                "supported: " + join(pre_tokenizer_names(), ", "));
}

struct PieceScanner::Level {
    Regex::Search    search;
    std::string_view text;
    size_t           pos         = 0;
    size_t           match_begin = 0; // [match_begin, match_end): found, not yet given out
    size_t           match_end   = 0;

    bool next(std::string_view & piece) {
        if (pos == text.size()) {
            return false;
        }
        if (match_end <= pos) {
            const bool found = search.find(text, pos);
            match_begin      = found ? search.begin() : text.size();
            match_end        = found ? search.end() : text.size();
        }
        const size_t end = match_begin > pos ? match_begin : match_end;
        piece            = text.substr(pos, end - pos);
        pos              = end;
        return true;
    }
};

PieceScanner::PieceScanner(const PreTokenizer & pre_tokenizer, std::string_view text) {
    for (const auto & pattern : pre_tokenizer.patterns_) {
        levels_.push_back(Level{ Regex::Search(*pattern), {} });
    }
    (levels_.empty() ? rest_ : levels_.front().text) = text;
}

PieceScanner::~PieceScanner() = default;

bool PieceScanner::next(std::string_view & piece) {
    if (levels_.empty()) {
        piece = std::exchange(rest_, {});
        return !piece.empty();
    }
    return next_at(levels_.size() - 1, piece);
}

bool PieceScanner::next_at(size_t index, std::string_view & piece) {
    Level & level = levels_[index];
    while (!level.next(piece)) {
        if (index == 0) {
            return false;
        }
        std::string_view fragment;
        if (!next_at(index - 1, fragment)) {
            return false;
        }
        level.text        = fragment;
        level.pos         = 0;
        level.match_begin = level.match_end = 0;
    }
    return true;
}

} // namespace penelope
