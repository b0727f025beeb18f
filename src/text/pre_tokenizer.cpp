#include "text/pre_tokenizer.h"

#include "base/error.h"
#include "base/format.h"
#include "gguf/keys.h"
#include "text/regex.h"

#include <array>

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

struct Entry {
    const char *                pre;
    std::array<const char *, 4> patterns;
    bool                        ignores_merges;
    bool                        implies_bos;
    bool                        composes_text;
};

constexpr Entry entries[] = {
    { "llama-bpe", { llama3_pattern }, true, true, false },
    { "llama3", { llama3_pattern }, true, true, false },
    { "llama-v3", { llama3_pattern }, true, true, false },
    { "gpt-2", { gpt2_pattern }, false, false, false },
    { "smollm", { smollm_pattern }, false, false, false },
    { "qwen2", { qwen2_pattern }, false, false, true },
    { "qwen35", { qwen35_pattern }, false, false, true },
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

PreTokenizer::PreTokenizer(std::string_view pre, const std::string & source) {
    const std::string_view wanted = pre.empty() ? "default" : pre;
    for (const Entry & entry : entries) {
        if (wanted != entry.pre) {
            continue;
        }
        for (const char * pattern : entry.patterns) {
            if (pattern) {
                patterns_.push_back(std::make_shared<const Regex>(expand(pattern)));
            }
        }
        ignores_merges_ = entry.ignores_merges;
        implies_bos_    = entry.implies_bos;
        composes_text_  = entry.composes_text;
        is_fallback_    = wanted == "default";
        return;
    }
    std::string known;
    for (const Entry & entry : entries) {
        known += (known.empty() ? "" : ", ") + std::string(entry.pre);
    }
    throw Error(ErrorKind::unsupported,
                in_quotes(source, 1024) + ": key " + in_quotes(keys::tokenizer_pre) + ": unknown pre-tokenizer " +
                    in_quotes(pre),
                "supported: " + known);
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
    levels_.front().text = text;
}

PieceScanner::~PieceScanner() = default;

bool PieceScanner::next(std::string_view & piece) {
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
