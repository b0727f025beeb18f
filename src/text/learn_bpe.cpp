#include "text/learn_bpe.h"

#include "text/pre_tokenizer.h"
#include "text/utf8.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace penelope {

namespace {

using Pair = std::pair<int32_t, int32_t>;

// A piece of text that BPE merges inside, as tokens, and how often it occurs.
struct Piece {
    std::vector<int32_t> symbols;
    int64_t              count;
};

struct PairCount {
    int64_t       count = 0;
    std::set<int> pieces; // that have, or had, the pair
};

// The pair to merge next: the most frequent, then the smaller ids. Entries of a changed count are left in the queue and
// skipped when they come up.
struct Candidate {
    int64_t count;
    Pair    pair;
    bool    operator<(const Candidate & other) const {
           return count != other.count ? count < other.count : pair > other.pair;
    }
};

std::vector<Piece> count_pieces(const std::vector<std::string> & texts, const PreTokenizer & pre) {
    std::map<std::string, int64_t> counts;
    for (const std::string & text : texts) {
        std::string valid;
        append_valid_utf8(valid, text);
        PieceScanner scanner(pre, valid);
        for (std::string_view piece; scanner.next(piece);) {
            counts[std::string(piece)]++;
        }
    }
    std::vector<Piece> pieces;
    for (const auto & [text, count] : counts) {
        Piece piece{ {}, count };
        for (char c : text) {
            piece.symbols.push_back(static_cast<unsigned char>(c));
        }
        pieces.push_back(std::move(piece));
    }
    return pieces;
}

class PairTable {
  public:
    explicit PairTable(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {
        for (size_t i = 0; i < pieces_.size(); i++) {
            count(int(i), +1);
        }
    }

    // False if no pair occurs twice.
    bool best(Pair & pair) {
        while (!queue_.empty()) {
            const Candidate top = queue_.top();
            if (top.count == counts_[top.pair].count) {
                pair = top.pair;
                return top.count >= 2;
            }
            queue_.pop();
        }
        return false;
    }

    void merge(const Pair & pair, int32_t result) {
        const std::set<int> touched = counts_[pair].pieces;
        for (int i : touched) {
            count(i, -1);
            std::vector<int32_t> & symbols = pieces_[size_t(i)].symbols;
            size_t                 n       = 0;
            for (size_t k = 0; k < symbols.size(); n++) {
                const bool is_pair =
                    k + 1 < symbols.size() && symbols[k] == pair.first && symbols[k + 1] == pair.second;
                symbols[n] = is_pair ? result : symbols[k];
                k += is_pair ? 2 : 1;
            }
            symbols.resize(n);
            count(i, +1);
        }
    }

  private:
    void count(int i, int sign) {
        const Piece & piece = pieces_[size_t(i)];
        for (size_t k = 0; k + 1 < piece.symbols.size(); k++) {
            const Pair  pair{ piece.symbols[k], piece.symbols[k + 1] };
            PairCount & entry = counts_[pair];
            entry.count += sign * piece.count;
            if (sign > 0) {
                entry.pieces.insert(i);
            }
            queue_.push({ entry.count, pair });
        }
    }

    std::vector<Piece>             pieces_;
    std::map<Pair, PairCount>      counts_;
    std::priority_queue<Candidate> queue_;
};

} // namespace

TokenizerData learn_bpe(const std::vector<std::string> & texts, int n_tokens) {
    TokenizerData data = byte_level_vocabulary();
    data.source        = "learned vocabulary";
    data.pre           = "smollm";
    PairTable pairs(count_pieces(texts, PreTokenizer(data.pre)));
    Pair      pair;

    std::unordered_map<std::string, int32_t> ids; // of the tokens that merges made
    while (int(data.tokens.size()) < n_tokens && pairs.best(pair)) {
        const std::string left = data.tokens[size_t(pair.first)], right = data.tokens[size_t(pair.second)];
        // Two pairs may give one text: "aa" + "a", "a" + "aa".
        const auto [token, is_new] = ids.emplace(left + right, int32_t(data.tokens.size()));
        pairs.merge(pair, token->second);
        data.merges.push_back(left + " " + right);
        if (is_new) {
            data.tokens.push_back(left + right);
            data.types.push_back(TokenType::normal);
        }
    }
    return data;
}

} // namespace penelope
