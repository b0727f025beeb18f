#include "text/vocabulary_check.h"

#include "base/error.h"
#include "base/format.h"
#include "gguf/keys.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penelope {

namespace {

// Whatever their type in the file, these end a turn or a text.
constexpr std::string_view end_texts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<turn|>",
    "</s>",
    "<eos>",
    "<EOT>",
    "[EOT]",
    "[EOS]",
    "<end_of_utterance>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>", // DeepSeek's, with its own bars and spaces
};

} // namespace

bool is_end_text(std::string_view text) {
    return std::find(std::begin(end_texts), std::end(end_texts), text) != std::end(end_texts);
}

bool is_sentencepiece(VocabularyKind kind) {
    return kind == VocabularyKind::spm_bpe || kind == VocabularyKind::unigram;
}

void fail_vocabulary(const TokenizerData & data, const char * key, const std::string & why) {
    throw Error(ErrorKind::format, in_quotes(data.source, 1024) + ": key " + in_quotes(key) + ": " + why,
                "the vocabulary is damaged");
}

void check_sizes(const TokenizerData & data) {
    if (data.tokens.empty()) {
        fail_vocabulary(data, keys::tokenizer_tokens, "no tokens");
    }
    if (data.tokens.size() > size_t(std::numeric_limits<int32_t>::max())) {
        fail_vocabulary(data, keys::tokenizer_tokens, "too many tokens");
    }
    size_t n_bytes = 0;
    for (const std::string & token : data.tokens) {
        n_bytes += token.size();
    }
    if (n_bytes > std::numeric_limits<uint32_t>::max()) {
        fail_vocabulary(data, keys::tokenizer_tokens, format_bytes(n_bytes) + " of text");
    }
    if (is_sentencepiece(data.kind) ? data.scores.size() != data.tokens.size() : !data.scores.empty()) {
        fail_vocabulary(data, keys::tokenizer_scores,
                        std::to_string(data.scores.size()) + " entries for " + std::to_string(data.tokens.size()) +
                            " tokens");
    }
    if (std::any_of(data.scores.begin(), data.scores.end(), [](float score) { return std::isnan(score); })) {
        fail_vocabulary(data, keys::tokenizer_scores, "a score is not a number");
    }
    if (!data.types.empty() && data.types.size() != data.tokens.size()) {
        fail_vocabulary(data, keys::tokenizer_token_type,
                        std::to_string(data.types.size()) + " entries for " + std::to_string(data.tokens.size()) +
                            " tokens");
    }
    for (size_t i = 0; i < data.types.size(); i++) {
        if (data.types[i] < TokenType::normal || data.types[i] > TokenType::byte) {
            fail_vocabulary(data, keys::tokenizer_token_type,
                            "entry " + std::to_string(i) + " is " +
                                std::to_string(static_cast<int32_t>(data.types[i])) + ", expected 1 to 6");
        }
    }
    const std::pair<const char *, std::optional<int32_t>> ids[] = {
        { keys::tokenizer_bos_token_id, data.bos },         { keys::tokenizer_eos_token_id, data.eos },
        { keys::tokenizer_eot_token_id, data.eot },         { keys::tokenizer_eom_token_id, data.eom },
        { keys::tokenizer_unknown_token_id, data.unknown }, { keys::tokenizer_padding_token_id, data.padding },
    };
    for (const auto & [key, id] : ids) {
        if (id && (*id < 0 || size_t(*id) >= data.tokens.size())) {
            fail_vocabulary(data, key,
                            std::to_string(*id) + " is outside the vocabulary of " +
                                std::to_string(data.tokens.size()) + " tokens");
        }
    }
}

std::optional<char> parse_byte_token(std::string_view text) {
    const std::string_view digits = "0123456789ABCDEF";
    if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') {
        return std::nullopt;
    }
    const size_t high = digits.find(text[3]), low = digits.find(text[4]);
    if (high == std::string_view::npos || low == std::string_view::npos) {
        return std::nullopt;
    }
    return static_cast<char>(high * 16 + low);
}

} // namespace penelope
