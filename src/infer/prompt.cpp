#include "infer/prompt.h"

#include "base/error.h"
#include "text/chat_template.h"
#include "text/prompt_template.h"
#include "text/tokenizer.h"
#include "text/wording.h"

namespace penelope {

std::vector<int32_t> prompt_tokens(const Engine & engine, const std::string & text, PromptForm form,
                                   ControlTokens control) {
    if (text.empty()) {
        throw Error(ErrorKind::usage, "prompt: it is empty", "give a question or a text to continue");
    }
    EncodeOptions options;
    options.add_bos = true;
    if (form == PromptForm::templated && engine.wording() != nullptr) {
        if (engine.wording()->prompt_template == chat_prompt_template) {
            return ChatTemplate(engine.tokenizer()).encode({ { "user", text } });
        }
        // A question is data: it was tokenized as plain text in training.
        return engine.tokenizer().encode(prompt_text(engine.wording()->prompt_template, text), options);
    }
    options.parse_special = control == ControlTokens::read;
    return engine.tokenizer().encode(text, options);
}

} // namespace penelope
