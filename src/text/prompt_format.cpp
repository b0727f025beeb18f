#include "text/prompt_format.h"

#include "base/error.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "text/prompt_template.h"

namespace penelope {

std::optional<PromptFormat> find_prompt_format(const GgufReader & file) {
    const std::optional<std::string> prompt_template = file.find_str(keys::penelope_prompt_template);
    if (!prompt_template) {
        return std::nullopt;
    }
    try {
        if (*prompt_template != chat_prompt_template) {
            prompt_text(*prompt_template, "");
        }
    } catch (const Error & error) {
        throw Error(ErrorKind::format, file.path() + ": " + error.message(), error.hint);
    }
    return PromptFormat{ *prompt_template, file.find_str(keys::penelope_answer_prefix).value_or(default_answer_prefix),
                         file.find_str(keys::penelope_task).value_or(""),
                         file.find_str(keys::penelope_match).value_or("") };
}

void write_prompt_format(GgufWriter & writer, const PromptFormat & prompt_format) {
    writer.set_str(keys::penelope_prompt_template, prompt_format.prompt_template);
    writer.set_str(keys::penelope_answer_prefix, prompt_format.answer_prefix);
    if (!prompt_format.task.empty()) {
        writer.set_str(keys::penelope_task, prompt_format.task);
    }
    if (!prompt_format.match.empty()) {
        writer.set_str(keys::penelope_match, prompt_format.match);
    }
}

} // namespace penelope
