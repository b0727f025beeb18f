// What a Tokenizer holds: the vocabulary, its merges or pieces, and how text is cut before.
#pragma once

#include "text/bpe_merges.h"
#include "text/pre_tokenizer.h"
#include "text/sentencepiece.h"
#include "text/special_tokens.h"
#include "text/string_table.h"
#include "text/token_trie.h"
#include "text/tokenizer.h"

#include <array>
#include <atomic>
#include <mutex>

namespace penelope {

// Whether merging the bytes of a token gives that token back. Found out when first needed.
enum class Whole : uint8_t { unasked, yes, no };

struct Tokenizer::Impl {
    VocabularyKind                        kind;
    PreTokenizer                          pre_tokenizer;
    SentencePieces                        pieces; // of all kinds but byte_bpe
    bool                                  adds_space = false, merges_spaces = false;
    StringTable                           texts; // as the vocabulary spells them
    StringTable                           bytes; // as they stand in text; indexed are those a piece of text can be
    std::vector<TokenType>                types;
    BpeMerges                             merges;
    std::array<int32_t, 256>              byte_tokens{};  // -1 for none
    SpecialTokens                         always_special; // found in any text
    SpecialTokens                         all_special;    // found when asked for
    std::vector<int32_t>                  ends;
    std::optional<int32_t>                bos, eos, padding;
    bool                                  adds_bos = false;
    std::string                           pre, chat_template;
    std::unique_ptr<std::atomic<Whole>[]> whole; // by token
    mutable std::once_flag                trie_once;
    mutable std::unique_ptr<TokenTrie>    trie; // null until somebody asks

    explicit Impl(TokenizerData && data);

    void add_tokens(const TokenizerData & data);
    void add_pieces(const TokenizerData & data);
    void add_merges(const TokenizerData & data);
    void check_id(int32_t id) const;
    // text: valid UTF-8 without special tokens. symbols: scratch.
    void encode_plain(std::string_view text, std::vector<int32_t> & out, std::vector<int32_t> & symbols) const;
    // The same for vocabularies that are no byte-level BPE.
    void encode_escaped(std::string_view text, std::vector<int32_t> & out, std::vector<int32_t> & symbols) const;
    void merge(std::string_view piece, std::vector<int32_t> & symbols) const;

    // The text in NFC where the model's tokenizer asks for it, then owned by `composed`; else the text itself.
    std::string_view normalize(std::string_view text, std::string & composed) const;
};

} // namespace penelope
