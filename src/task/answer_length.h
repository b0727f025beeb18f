// Default limits of generated tokens in evaluation and validation.
#pragma once

namespace penelope {

constexpr int kAnswerTokens = 32;  // an answer alone
constexpr int kTraceTokens  = 256; // visible steps and an answer

} // namespace penelope
