// What a model file remembers of how its model is asked and how its answers are read: the text around a question, what
// stands before an answer, the task and how answers are compared. Sidecars, LoRAs and trained backbones carry it under
// keys that llama.cpp passes over.
#pragma once

#include <optional>
#include <string>

namespace penelope {

class GgufReader;
class GgufWriter;

struct PromptFormat {
    std::string prompt_template; // with {question}, or chat_prompt_template
    std::string answer_prefix;
    std::string task;  // may be empty
    std::string match; // how answers of the generic task are compared; empty: exactly
};

// Nothing when the file has no prompt template. Throws Error(format) when it has one without exactly one {question}.
std::optional<PromptFormat> find_prompt_format(const GgufReader & file);

void write_prompt_format(GgufWriter & writer, const PromptFormat & prompt_format);

} // namespace penelope
