// How an example becomes text: what the model is asked and what it has to write. Trainer, evaluation and `run` share it.
// Input: an example, the template and the answer prefix of a model; output: prompt and target strings. The prompt is
// tokenized with BOS where the vocabulary adds one, the target as one piece without BOS and followed by EOS.
#pragma once

#include "task/example.h"

#include <string>

namespace penelope {

constexpr const char * default_prompt_template = "{question}\n";
constexpr const char * default_answer_prefix   = "### ";

// The template with its one `{question}` replaced. Throws Error (usage) if the template has none or several.
std::string prompt_text(const std::string & prompt_template, const std::string & question);

// Steps n_latent+1..J, each followed by a newline, then answer_prefix + answer: the target when the first n_latent steps
// are left to the latent computation. n_latent >= J leaves the answer alone; 0 is visible chain of thought.
std::string target_text(const Example & example, size_t n_latent, const std::string & answer_prefix);

} // namespace penelope
