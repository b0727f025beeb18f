#include "text/wording.h"

#include "base/error.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "text/prompt_template.h"

namespace penelope {

std::optional<Wording> find_wording(const GgufReader & file) {
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
    return Wording{ *prompt_template, file.find_str(keys::penelope_answer_prefix).value_or(default_answer_prefix),
                    file.find_str(keys::penelope_task).value_or(""), file.find_str(keys::penelope_match).value_or("") };
}

void write_wording(GgufWriter & writer, const Wording & wording) {
    writer.set_str(keys::penelope_prompt_template, wording.prompt_template);
    writer.set_str(keys::penelope_answer_prefix, wording.answer_prefix);
    if (!wording.task.empty()) {
        writer.set_str(keys::penelope_task, wording.task);
    }
    if (!wording.match.empty()) {
        writer.set_str(keys::penelope_match, wording.match);
    }
}

} // namespace penelope
