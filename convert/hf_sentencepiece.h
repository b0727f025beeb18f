// SentencePiece's BPE in tokenizer.json: a BPE model with byte_fallback over characters, U+2581 for spaces. GGUF orders
// joins by the scores of their results, tokenizer.json by a list of merges: the score of a token is minus the rank of
// the first merge that makes it.
#pragma once

#include "base/json.h"
#include "text/tokenizer_data.h"

#include <string>
#include <utility>
#include <vector>

namespace penelope {

// Whether model is of this kind.
bool is_sentencepiece_json(const Json & model);

// Sets kind, pre and add_space_prefix from the normalizer and the pre-tokenizer. Throws Error(unsupported) for others.
void read_sentencepiece_form(const Json & tokenizer, const std::string & path, TokenizerData & out);
// Sets scores from the merges, and the types of bytes and of the unknown token, when the tokens are complete.
void score_sentencepieces(const Json & merges, const std::string & path, TokenizerData & out);

// The other direction: the pairs that make a token, best first, and what stands beside them in tokenizer.json.
std::vector<std::pair<std::string, std::string>> sentencepiece_merges(const TokenizerData & data);
OrderedJson                                      sentencepiece_normalizer(bool add_space_prefix);
OrderedJson                                      sentencepiece_decoder(bool add_space_prefix);

} // namespace penelope
