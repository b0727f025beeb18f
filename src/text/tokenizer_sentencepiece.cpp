// The part of the tokenizer for vocabularies that are no byte-level BPE: SentencePiece's, and BPE over characters as
// Gemma has it.
#include "text/tokenizer_impl.h"
#include "text/utf8.h"
#include "text/vocabulary_check.h"

namespace penelope {

void Tokenizer::Impl::add_pieces(const TokenizerData & data) {
    std::vector<bool> usable(types.size());
    byte_tokens.fill(-1);
    for (size_t id = 0; id < types.size(); id++) {
        if (types[id] == TokenType::byte) {
            byte_tokens[static_cast<uint8_t>(*parse_byte_token(data.tokens[id]))] = int32_t(id);
        }
        // Text never becomes a control token, nor a byte by its name.
        usable[id] =
            types[id] == TokenType::normal || types[id] == TokenType::user_defined || types[id] == TokenType::unused;
    }
    pieces = SentencePieces(data.scores, std::move(usable), byte_tokens, data.unknown);
}

void Tokenizer::Impl::encode_escaped(std::string_view text, std::vector<int32_t> & out,
                                     std::vector<int32_t> & symbols) const {
    if (text.empty()) {
        return;
    }
    std::string spaced = adds_space ? " " : "";
    for (const char c : text) {
        if (!merges_spaces || c != ' ' || spaced.empty() || spaced.back() != ' ') {
            spaced += c;
        }
    }
    const std::string escaped = escape_spaces(spaced);
    if (kind == VocabularyKind::spm_bpe) {
        pieces.encode_bpe(texts, escaped, out);
        return;
    }
    if (kind == VocabularyKind::unigram) {
        pieces.encode_unigram(texts, escaped, out);
        return;
    }
    PieceScanner     scanner(pre_tokenizer, escaped);
    std::string_view piece;
    while (scanner.next(piece)) {
        if (const int32_t id = texts.find(piece); id >= 0 && piece[0] == '\n' && types[id] == TokenType::normal) {
            out.push_back(id);
            continue;
        }
        symbols.clear();
        std::vector<std::string_view> without; // characters that are no token
        for (size_t pos = 0; pos < piece.size();) {
            const std::string_view character = piece.substr(pos, next_utf8_unit(piece, pos).size);
            const int32_t          id        = texts.find(character);
            symbols.push_back(id >= 0 && !is_special(types[id]) ? id : -1);
            if (symbols.back() < 0) {
                without.push_back(character);
            }
            pos += character.size();
        }
        merges.apply(symbols);
        size_t next = 0;
        for (const int32_t symbol : symbols) {
            if (symbol >= 0) {
                out.push_back(symbol);
            } else {
                pieces.fall_back(without[next++], out);
            }
        }
    }
}

} // namespace penelope
