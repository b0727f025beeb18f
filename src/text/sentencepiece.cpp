#include "text/sentencepiece.h"

#include "text/utf8.h"

#include <algorithm>
#include <limits>
#include <queue>

namespace penelope {

namespace {

constexpr std::string_view space_mark    = "\xE2\x96\x81"; // U+2581
constexpr float            unknown_below = 10.0f;          // what SentencePiece puts the unknown token below the worst

struct Symbol {
    size_t begin, size; // size 0: joined to the one before
    int    before, after;
};

struct Pair {
    float  score;
    int    left, right;
    size_t size; // of both when it was found: other sizes mean that one of them has grown
};

struct ComesLater {
    bool operator()(const Pair & a, const Pair & b) const {
        return a.score != b.score ? a.score < b.score : a.left > b.left;
    }
};

} // namespace

std::string escape_spaces(std::string_view text) {
    std::string out;
    for (const char c : text) {
        c == ' ' ? out.append(space_mark) : out.append(1, c);
    }
    return out;
}

std::string unescape_spaces(std::string_view text) {
    std::string out;
    for (size_t pos = 0; pos < text.size();) {
        const size_t mark = std::min(text.find(space_mark, pos), text.size());
        out.append(text.substr(pos, mark - pos));
        if (mark < text.size()) {
            out.push_back(' ');
        }
        pos = mark + space_mark.size();
    }
    return out;
}

SentencePieces::SentencePieces(std::vector<float> scores, std::vector<bool> usable,
                               const std::array<int32_t, 256> & byte_tokens, std::optional<int32_t> unknown)
    : scores_(std::move(scores)), usable_(std::move(usable)), byte_tokens_(byte_tokens), unknown_(unknown) {
    unknown_score_ = scores_.empty() ? 0.0f : *std::min_element(scores_.begin(), scores_.end()) - unknown_below;
}

int32_t SentencePieces::find(const StringTable & texts, std::string_view text) const {
    const int32_t id = texts.find(text);
    return id >= 0 && usable_[size_t(id)] ? id : -1;
}

void SentencePieces::fall_back(std::string_view character, std::vector<int32_t> & out) const {
    for (const char c : character) {
        if (const int32_t id = byte_tokens_[static_cast<uint8_t>(c)]; id >= 0) {
            out.push_back(id);
        } else if (unknown_) {
            out.push_back(*unknown_);
            return;
        }
    }
}

void SentencePieces::encode_bpe(const StringTable & texts, std::string_view text, std::vector<int32_t> & out) const {
    std::vector<Symbol> symbols;
    for (size_t pos = 0; pos < text.size();) {
        const size_t size = next_utf8_unit(text, pos).size;
        const int    i    = int(symbols.size());
        symbols.push_back({ pos, size, i - 1, pos + size < text.size() ? i + 1 : -1 });
        pos += size;
    }
    std::priority_queue<Pair, std::vector<Pair>, ComesLater> open;
    const auto                                               try_pair = [&](int left, int right) {
        if (left < 0 || right < 0) {
            return;
        }
        const size_t size = symbols[size_t(left)].size + symbols[size_t(right)].size;
        if (const int32_t id = find(texts, text.substr(symbols[size_t(left)].begin, size)); id >= 0) {
            open.push({ scores_[size_t(id)], left, right, size });
        }
    };
    for (int i = 1; i < int(symbols.size()); i++) {
        try_pair(i - 1, i);
    }
    while (!open.empty()) {
        const Pair pair = open.top();
        open.pop();
        Symbol &left = symbols[size_t(pair.left)], &right = symbols[size_t(pair.right)];
        if (left.size == 0 || right.size == 0 || left.size + right.size != pair.size) {
            continue;
        }
        left.size  = pair.size;
        right.size = 0;
        left.after = right.after;
        if (right.after >= 0) {
            symbols[size_t(right.after)].before = pair.left;
        }
        try_pair(left.before, pair.left);
        try_pair(pair.left, left.after);
    }
    for (int i = symbols.empty() ? -1 : 0; i >= 0; i = symbols[size_t(i)].after) {
        const std::string_view piece = text.substr(symbols[size_t(i)].begin, symbols[size_t(i)].size);
        const int32_t          id    = find(texts, piece);
        if (id >= 0) {
            out.push_back(id);
        } else {
            fall_back(piece, out);
        }
    }
}

void SentencePieces::encode_unigram(const StringTable & texts, std::string_view text,
                                    std::vector<int32_t> & out) const {
    struct Cut {
        double  score = -std::numeric_limits<double>::infinity();
        size_t  begin = 0;  // of the last token
        int32_t id    = -1; // -1: no token
    };
    std::vector<Cut> best(text.size() + 1); // of the text up to here
    best[0].score = 0;
    for (size_t pos = 0; pos < text.size();) {
        const size_t character = next_utf8_unit(text, pos).size;
        bool         whole     = false;
        for (size_t size = 1; size <= std::min(longest_, text.size() - pos); size++) {
            const int32_t id = find(texts, text.substr(pos, size));
            if (id < 0) {
                continue;
            }
            whole              = whole || size == character;
            const double score = best[pos].score + double(scores_[size_t(id)]);
            if (score > best[pos + size].score) {
                best[pos + size] = { score, pos, id };
            }
        }
        const double score = best[pos].score + double(unknown_score_);
        if (!whole && score > best[pos + character].score) {
            best[pos + character] = { score, pos, -1 };
        }
        pos += character;
    }
    std::vector<std::pair<size_t, size_t>> cuts;
    for (size_t end = text.size(); end > 0; end = best[end].begin) {
        cuts.emplace_back(best[end].begin, end);
    }
    for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut) {
        const int32_t id              = best[cut->second].id;
        const bool    repeats_unknown = id < 0 && unknown_ && !out.empty() && out.back() == *unknown_;
        if (id >= 0) {
            out.push_back(id);
        } else if (!repeats_unknown) {
            fall_back(text.substr(cut->first, cut->second - cut->first), out);
        }
    }
}

} // namespace penelope
