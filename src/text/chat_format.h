// What a model's chat template (Jinja text from tokenizer.chat_template) does, as a few facts. We run no Jinja: the two
// families our models use are recognised by the expressions that write a turn, and every part that decides what plain
// conversations look like must be one we know. A template with anything else is refused rather than guessed at.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penelope {

enum class ChatFamily {
    chatml, // <|im_start|>ROLE\nCONTENT<|im_end|>\n
    llama3, // <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>
};

struct ChatFormat {
    ChatFamily                 family   = ChatFamily::chatml;
    bool                       with_bos = false;  // the text starts with BOS
    bool                       trims    = false;  // white space around a message's content is dropped
    std::optional<std::string> default_system;    // content of a system message put before a conversation without one
    std::optional<std::string> system_preface;    // put in front of the system message, which then always exists
    std::string                generation_suffix; // after the assistant's header in the generation prompt
    std::optional<std::string>
         suffix_without_thinking; // the same with enable_thinking = false, where the template asks
    bool drops_reasoning = false; // of answers before the last question, what is before </think> is left out
    bool wraps_reasoning = false; // answers after the last question get a <think> block even if they have none

    // The model writes a chain of thought before its answer.
    bool thinks() const;
};

// Throws Error(unsupported), with a hint that names --raw, for any template but those of the two families.
ChatFormat recognise_chat_format(std::string_view jinja);

// The plain form of a family by the name people know it under, "chatml" or "llama3", and back.
ChatFormat   named_chat_format(std::string_view name); // throws Error(usage) for another name
const char * chat_family_name(ChatFamily family);

} // namespace penelope
