// The Jinja text of a chat template: recognised or refused, and a conversation through it.
#include "target.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace penelope::fuzz {

void run_input(const std::string & bytes) {
    TokenizerData data = byte_level_vocabulary();
    data.chat_template = bytes;
    const ChatTemplate chat{ Tokenizer(data) };
    chat.encode({ { "system", "Be brief." },
                  { "user", "a</think>b" },
                  { "assistant", "<think>c</think>d" },
                  { "user", bytes } });
    chat.encode_turn({ { "user", "e" } }, { 'x' });
}

std::vector<std::string> seeds() {
    return { "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
             "'<|im_end|>' + '\n'}}{% endfor %}"
             "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
             "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
             "'<|start_header_id|>' + message['role'] + "
             "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set "
             "content = bos_token + content "
             "%}{% endif %}{{ content }}{% endfor %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}" };
}

} // namespace penelope::fuzz
