// The messages of a conversation, in the forms of OpenAI's Chat Completions and Responses and of Anthropic's Messages.
#pragma once

#include "serve/fields.h"
#include "text/chat_template.h"

namespace penelope {

// Reads a list of messages or of Responses' items. Throws RequestError naming the field.
std::vector<ChatMessage> read_messages(const Fields & fields, const std::string & name);

} // namespace penelope
