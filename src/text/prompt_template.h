// The text around a question, which a model was trained with. Trainer, evaluation and `run` share it.
#pragma once

#include <string>

namespace penelope {

constexpr const char * default_prompt_template = "{question}\n";
constexpr const char * default_answer_prefix   = "### ";
// Stands for the chat template of the model itself.
constexpr const char * chat_prompt_template = "{chat}";

// The template with its one `{question}` replaced. Throws Error (usage) if the template has none or several.
std::string prompt_text(const std::string & prompt_template, const std::string & question);

} // namespace penelope
