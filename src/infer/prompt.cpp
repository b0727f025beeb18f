#include "infer/prompt.h"

#include "text/prompt_format.h"
#include "text/prompt_template.h"
#include "text/tokenizer.h"

namespace penelope {

std::vector<int32_t> prompt_tokens(const Engine & engine, const std::string & text, PromptForm form,
                                   ControlTokens control) {
    if (text.empty()) {
        throw Error(ErrorKind::usage, "prompt: it is empty", "give a question or a text to continue");
    }
    EncodeOptions options;
    options.add_bos = true;
    if (form == PromptForm::templated && engine.prompt_format() != nullptr) {
        if (engine.prompt_format()->prompt_template == chat_prompt_template) {
            return ChatTemplate(engine.tokenizer()).encode({ { "user", text } });
        }
        // A question is data: it was tokenized as plain text in training.
        return engine.tokenizer().encode(prompt_text(engine.prompt_format()->prompt_template, text), options);
    }
    options.parse_special = control == ControlTokens::read;
    return engine.tokenizer().encode(text, options);
}

PromptWriter::PromptWriter(const Engine & engine, PromptOptions choice) : engine_(engine), options_(std::move(choice)) {
    const PromptFormat * prompt_format = engine.prompt_format();
    const bool           own_text = prompt_format != nullptr && prompt_format->prompt_template != chat_prompt_template;
    if (options_.raw || options_.chat_template == "none") {
        options_.raw = options_.raw || !own_text;
    } else if (options_.chat_template != "auto") {
        ChatSettings settings;
        settings.thinking = options_.thinking;
        chat_.emplace(engine.tokenizer(), named_chat_template(options_.chat_template, engine.tokenizer()), settings);
    } else if (!own_text) {
        try {
            chat_.emplace(engine.tokenizer(), options_.thinking);
        } catch (const Error & error) {
            if (error.kind == ErrorKind::usage) {
                throw; // it was asked to think, or not to, and cannot
            }
            no_template_.emplace(error);
        }
    }
    if (options_.thinking == Thinking::on && !chat_) {
        throw Error(ErrorKind::usage, "--reasoning on: prompts go through no chat template that thinks aloud",
                    "leave it out, or --raw and --chat-template");
    }
    if (!options_.system.empty() && !chat_) {
        throw Error(ErrorKind::usage,
                    "-sys: prompts go to this model without a chat template, the place of a system message",
                    "leave it out, or name a template with --chat-template");
    }
}

std::vector<int32_t> PromptWriter::tokens(const std::string & text) const {
    if (!chat_ || text.empty()) {
        return prompt_tokens(engine_, text, options_.raw ? PromptForm::raw : PromptForm::templated);
    }
    std::vector<ChatMessage> messages;
    if (!options_.system.empty()) {
        messages.push_back({ "system", options_.system });
    }
    messages.push_back({ "user", text });
    return chat_->encode(messages);
}

bool PromptWriter::looks_templated(const std::string & text) const {
    return chat_ && !chat_->start_of_turn().empty() && text.find(chat_->start_of_turn()) != std::string::npos;
}

std::string PromptWriter::description() const {
    if (chat_) {
        return options_.chat_template == "auto"
                   ? "instruct model: its file has a chat template, prompts go through it; "
                     "--raw: as they are"
                   : "prompts go through the chat template " + options_.chat_template;
    }
    if (options_.raw) {
        return "prompts go to the model as they are";
    }
    return engine_.prompt_format() != nullptr ? "prompts go through the template in the model's files"
                                              : "no chat template in the model's file: text is continued as it is";
}

} // namespace penelope
