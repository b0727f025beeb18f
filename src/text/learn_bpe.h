// Learns a byte-level BPE vocabulary from text, for backbones made from nothing.
#pragma once

#include "text/tokenizer_data.h"

#include <string>
#include <vector>

namespace penelope {

constexpr int kFewestTokens = 258; // every byte, BOS and EOS

// The byte-level vocabulary (text/tokenizer_data.h) and, from id 258 on, one token for each merge, until there are
// n_tokens or no pair occurs twice. The most frequent pair is merged first; among equals the one of smaller ids.
// Pre-tokenizer smollm: words with the space before them, single digits. The same texts give the same vocabulary.
// Bytes that are not UTF-8 are counted as U+FFFD. n_tokens >= kFewestTokens.
TokenizerData learn_bpe(const std::vector<std::string> & texts, int n_tokens);

} // namespace penelope
