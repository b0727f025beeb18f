// The decoding loop: one token per sequence and step, as a batch, until all sequences are done. Used by sessions and by
// validation in training.
#pragma once

#include "infer/generation_state.h"
#include "method/method.h"

namespace penelope {

class DecodeLoop {
  public:
    // n_vocab: of the logits. not_finite: called when a row of logits is not finite; must throw. cancelled: asked
    // before every token.
    DecodeLoop(Context & context, const Tokenizer & tokenizer, int n_vocab, std::function<void()> not_finite,
               std::function<bool()> cancelled)
        : context_(context), env_{ tokenizer, n_vocab, context.n_ctx(), std::move(not_finite) },
          cancelled_(std::move(cancelled)) {}

    // Goes on from a filled context. blanks: one answer per sequence, with what is known of it so far.
    std::vector<Answer> run(const Prefill & prefilled, std::vector<Answer> initial, const GenerateOptions & wanted,
                            const TokenCallback & on_token = {}, const ReasoningCallback & on_reasoning = {});

  private:
    Context &             context_;
    GenerationEnv         env_;
    std::function<bool()> cancelled_;
};

} // namespace penelope
