#include "text/tokenizer_impl.h"

#include "base/error.h"
#include "base/format.h"
#include "base/log.h"
#include "gguf/keys.h"
#include "text/byte_alphabet.h"
#include "text/normalize.h"
#include "text/utf8.h"
#include "text/vocabulary_check.h"

#include <algorithm>
#include <limits>

namespace penelope {

namespace {

// A vocabulary without a pattern of its own takes whole lines, and is not warned about.
std::string pattern_of(const TokenizerData & data) {
    return data.kind == VocabularyKind::byte_bpe ? data.pre : "gemma4";
}

} // namespace

Tokenizer::Impl::Impl(TokenizerData && data)
    : kind(data.kind),
      pre_tokenizer(pattern_of(data), data.source, !data.merges.empty() || data.kind != VocabularyKind::byte_bpe),
      texts(data.tokens.size()), bytes(data.tokens.size()), merges(data.merges.size()) {
    check_sizes(data);
    add_tokens(data);
    add_merges(data);
    pre           = data.pre;
    chat_template = data.chat_template;
    bos           = data.bos;
    eos           = data.eos;
    padding       = data.padding;
    adds_bos      = data.add_bos.value_or(pre_tokenizer.implies_bos() || kind == VocabularyKind::spm_bpe);
    adds_space    = is_sentencepiece(kind) && data.add_space_prefix.value_or(true);
    merges_spaces = data.merges_spaces;
    if (adds_bos && !bos) {
        fail_vocabulary(data, keys::tokenizer_bos_token_id, "missing, but the vocabulary adds BOS");
    }
    if (pre_tokenizer.is_fallback()) {
        log_warning(in_quotes(data.source, 1024) + ": key " + in_quotes(keys::tokenizer_pre) +
                    ": missing or 'default', so a general pattern splits the text: tokens may differ from those the "
                    "model knows");
    }
}

void Tokenizer::Impl::add_tokens(const TokenizerData & data) {
    const int32_t n = static_cast<int32_t>(data.tokens.size());
    types           = data.types;
    types.resize(n, TokenType::normal);
    whole = std::make_unique<std::atomic<Whole>[]>(n);
    for (int32_t id = 0; id < n; id++) {
        const std::string & text = data.tokens[id];
        if (is_end_text(text)) {
            types[id] = TokenType::control;
            ends.push_back(id);
        }
        // Empty tokens exist in the wild as fillers. They stand for nothing and nothing stands for them.
        if (const int32_t other = texts.add(text, !text.empty()); other >= 0) {
            fail_vocabulary(data, keys::tokenizer_tokens,
                            in_quotes(text) + " is both token " + std::to_string(other) + " and " + std::to_string(id));
        }
        std::optional<std::string> decoded;
        const bool                 is_text = types[id] == TokenType::normal;
        if (is_text && kind == VocabularyKind::byte_bpe) {
            decoded = alphabet_to_bytes(text);
        } else if (is_text) {
            decoded = unescape_spaces(text);
        } else if (types[id] == TokenType::byte) {
            const std::optional<char> byte = parse_byte_token(text);
            if (!byte) {
                fail_vocabulary(data, keys::tokenizer_tokens,
                                "token " + std::to_string(id) + ", " + in_quotes(text) + ", is no byte like <0x1F>");
            }
            bytes.add(std::string_view(&*byte, 1), false);
            continue;
        } else if (!text.empty() && types[id] != TokenType::unused) {
            all_special.add(text, id);
            if (types[id] == TokenType::user_defined) {
                always_special.add(text, id);
            }
        }
        bytes.add(decoded ? *decoded : text, decoded && !text.empty());
    }
    if (kind == VocabularyKind::byte_bpe) {
        for (int b = 0; b < 256; b++) {
            byte_tokens[b] = texts.find(bytes_to_alphabet(std::string(1, static_cast<char>(b))));
        }
    } else {
        add_pieces(data);
    }
    for (const std::optional<int32_t> id : { data.eos, data.eot, data.eom }) {
        if (id) {
            ends.push_back(*id);
        }
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
}

void Tokenizer::Impl::add_merges(const TokenizerData & data) {
    std::string joined;
    for (size_t i = 0; i < data.merges.size(); i++) {
        const std::string_view rule  = data.merges[i];
        const size_t           space = rule.find(' ', 1);
        if (space == std::string_view::npos || space + 1 == rule.size()) {
            fail_vocabulary(data, keys::tokenizer_merges,
                            "entry " + std::to_string(i) + ", " + in_quotes(rule) + ", is not two tokens and a space");
        }
        joined.assign(rule.substr(0, space)).append(rule.substr(space + 1));
        const int32_t left   = texts.find(rule.substr(0, space));
        const int32_t right  = texts.find(rule.substr(space + 1));
        const int32_t result = texts.find(joined);
        if (left < 0 || right < 0 || result < 0) {
            fail_vocabulary(data, keys::tokenizer_merges,
                            "entry " + std::to_string(i) + ", " + in_quotes(rule) + ": " +
                                (left < 0    ? "left part"
                                 : right < 0 ? "right part"
                                             : "result") +
                                " is no token");
        }
        merges.add(left, right, result);
    }
}

void Tokenizer::Impl::check_id(int32_t id) const {
    if (id < 0 || id >= texts.size()) {
        throw Error(ErrorKind::usage, "token " + std::to_string(id) + ": outside the vocabulary of " +
                                          std::to_string(texts.size()) + " tokens");
    }
}

void Tokenizer::Impl::merge(std::string_view piece, std::vector<int32_t> & symbols) const {
    symbols.resize(piece.size());
    for (size_t i = 0; i < piece.size(); i++) {
        symbols[i] = byte_tokens[static_cast<uint8_t>(piece[i])];
    }
    merges.apply(symbols);
}

std::string_view Tokenizer::Impl::normalize(std::string_view text, std::string & composed) const {
    if (!pre_tokenizer.composes_text() || is_surely_composed(text)) {
        return text;
    }
    composed = normalize_unicode(text);
    return composed;
}

// Normalized here and not before special tokens are found: those stand in the text as written, and a combining mark
// after one does not compose with it.
void Tokenizer::Impl::encode_plain(std::string_view text, std::vector<int32_t> & out,
                                   std::vector<int32_t> & symbols) const {
    if (kind != VocabularyKind::byte_bpe) {
        encode_escaped(text, out, symbols);
        return;
    }
    std::string      composed;
    PieceScanner     scanner(pre_tokenizer, normalize(text, composed));
    std::string_view piece;
    while (scanner.next(piece)) {
        const int32_t id = bytes.find(piece);
        if (id >= 0 && (pre_tokenizer.ignores_merges() || whole[id].load(std::memory_order_relaxed) == Whole::yes)) {
            out.push_back(id);
            continue;
        }
        merge(piece, symbols);
        if (id >= 0) {
            const bool is_whole = symbols.size() == 1 && symbols[0] == id;
            whole[id].store(is_whole ? Whole::yes : Whole::no, std::memory_order_relaxed);
        }
        for (const int32_t symbol : symbols) {
            if (symbol >= 0) {
                out.push_back(symbol);
            }
        }
    }
}

Tokenizer::Tokenizer(TokenizerData data) : impl_(std::make_shared<const Impl>(std::move(data))) {}

Tokenizer Tokenizer::from_gguf(const GgufReader & file) {
    return Tokenizer(read_tokenizer_data(file));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
    if (text.size() > size_t(std::numeric_limits<int32_t>::max()) / 3) {
        throw Error(ErrorKind::usage, "text of " + format_bytes(text.size()) + ": too long to tokenize at once");
    }
    std::string repaired;
    if (valid_utf8_prefix(text) != text.size()) {
        append_valid_utf8(repaired, text);
        text = repaired;
    }
    std::vector<int32_t> out, symbols;
    out.reserve(text.size() / 4 + 1);
    if (options.add_bos && impl_->adds_bos) {
        out.push_back(*impl_->bos);
    }
    const SpecialTokens & special = options.parse_special ? impl_->all_special : impl_->always_special;
    size_t                pos     = 0;
    if (!special.empty()) {
        for (const SpecialTokens::Match & match : special.find(text)) {
            impl_->encode_plain(text.substr(pos, match.begin - pos), out, symbols);
            out.push_back(match.id);
            pos = match.begin + match.size;
        }
    }
    impl_->encode_plain(text.substr(pos), out, symbols);
    return out;
}

size_t Tokenizer::n_unencodable(std::string_view text) const {
    if (impl_->kind != VocabularyKind::byte_bpe) {
        return 0; // bytes or the unknown token stand for everything
    }
    std::string repaired, composed;
    append_valid_utf8(repaired, text);
    const std::string_view read = impl_->normalize(repaired, composed);
    return std::count_if(read.begin(), read.end(),
                         [&](char c) { return impl_->byte_tokens[static_cast<uint8_t>(c)] < 0; });
}

std::string Tokenizer::decode(const std::vector<int32_t> & ids, DecodeOptions options) const {
    std::string bytes;
    bool        first = drops_first_space();
    for (const int32_t id : ids) {
        impl_->check_id(id);
        if (options.special || !is_special(impl_->types[id])) {
            const std::string_view token = impl_->bytes[id];
            bytes += first && !token.empty() && token[0] == ' ' ? token.substr(1) : token;
            first = false;
        }
    }
    if (valid_utf8_prefix(bytes) == bytes.size()) {
        return bytes;
    }
    std::string text;
    append_valid_utf8(text, bytes);
    return text;
}

bool Tokenizer::drops_first_space() const {
    return impl_->adds_space;
}

std::string Tokenizer::token_bytes(int32_t id) const {
    impl_->check_id(id);
    return std::string(impl_->bytes[id]);
}

std::string Tokenizer::token_text(int32_t id) const {
    impl_->check_id(id);
    return std::string(impl_->texts[id]);
}

TokenType Tokenizer::token_type(int32_t id) const {
    impl_->check_id(id);
    return impl_->types[id];
}

const TokenTrie & Tokenizer::trie() const {
    std::call_once(impl_->trie_once, [this] { impl_->trie = std::make_unique<TokenTrie>(*this); });
    return *impl_->trie;
}

int32_t Tokenizer::n_vocab() const {
    return impl_->texts.size();
}
std::optional<int32_t> Tokenizer::bos() const {
    return impl_->bos;
}
std::optional<int32_t> Tokenizer::eos() const {
    return impl_->eos;
}
std::optional<int32_t> Tokenizer::padding() const {
    return impl_->padding;
}
bool Tokenizer::adds_bos() const {
    return impl_->adds_bos;
}

bool Tokenizer::is_end_of_generation(int32_t id) const {
    return std::binary_search(impl_->ends.begin(), impl_->ends.end(), id);
}

const std::vector<int32_t> & Tokenizer::end_of_generation() const {
    return impl_->ends;
}

std::vector<Tokenizer::ControlToken> Tokenizer::find_control_tokens(std::string_view text) const {
    std::vector<ControlToken> found;
    for (const SpecialTokens::Match & match : impl_->all_special.find(text)) {
        if (impl_->types[match.id] != TokenType::user_defined) {
            found.push_back({ match.begin, match.size, match.id });
        }
    }
    return found;
}

std::optional<int32_t> Tokenizer::find_token(std::string_view text) const {
    const int32_t id = impl_->texts.find(text);
    return id < 0 ? std::nullopt : std::optional<int32_t>(id);
}

std::string Tokenizer::tokens_sha256() const {
    std::vector<std::string> tokens;
    for (int32_t id = 0; id < n_vocab(); id++) {
        tokens.emplace_back(impl_->texts[id]);
    }
    return penelope::tokens_sha256(tokens);
}

const std::string & Tokenizer::pre() const {
    return impl_->pre;
}
const std::string & Tokenizer::chat_template() const {
    return impl_->chat_template;
}

} // namespace penelope
