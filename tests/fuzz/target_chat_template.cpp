// The Jinja text of a chat template, and a conversation through it: text or an Error, in bounded time and memory.
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
    chat.encode_turn({ { "user", "e" } }, { 'x' }, { { "user", "f" } });
}

std::vector<std::string> seeds() {
    return {
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
        "'<|im_end|>' + '\n'}}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
        "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
        "'<|start_header_id|>' + message['role'] + "
        "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set "
        "content = bos_token + content "
        "%}{% endif %}{{ content }}{% endfor %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}",
        "{% macro f(a, b=1) %}{{ a ~ b | upper }}{% endmacro %}{% set ns = namespace(x=[]) %}{% for m in "
        "messages[::-1] if m.content is "
        "string %}{% set ns.x = ns.x + [f(m.content.split('</think>')[-1].lstrip('\\n'), b=loop.index0)] %}{% endfor %}"
        "{{ ns.x | join('-') }}{{ messages | selectattr('role', 'equalto', 'user') | list | tojson(indent=2) }}"
        "{%- filter trim %} {{ messages | map(attribute='role') | sort | reverse | first }} {% endfilter -%}"
        "{{ {'a': 1, 'b': [2, 3.5, none, true]} | dictsort | string | replace('1', '2') | indent(2) }}"
    };
}

} // namespace penelope::fuzz
