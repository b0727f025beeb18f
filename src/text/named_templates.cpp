// Chat templates by name, for models whose files have none: the plain form of each family.
#include "base/error.h"
#include "base/format.h"
#include "base/mapped_file.h"
#include "text/chat_template.h"

namespace penelope {

namespace {

struct NamedTemplate {
    const char *              name;
    std::vector<const char *> control_tokens; // which the vocabulary must have
    const char *              source;
};

const NamedTemplate templates[] = {
    { "chatml",
      { "<|im_start|>", "<|im_end|>" },
      "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' "
      "}}"
      "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}" },
    { "llama2",
      {},
      "{{ bos_token }}{% set system = '' %}{% for message in messages %}{% if message['role'] == 'system' %}"
      "{% set system = '<<SYS>>\\n' + message['content'] + '\\n<</SYS>>\\n\\n' %}{% elif message['role'] == 'user' %}"
      "{{ '[INST] ' + (system if loop.index0 < 2 else '') + message['content'] + ' [/INST]' }}{% else %}"
      "{{ ' ' + message['content'] + ' ' + eos_token + ('' if loop.last else bos_token) }}{% endif %}{% endfor %}" },
    { "llama3",
      { "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>" },
      "{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + "
      "'<|end_header_id|>\\n\\n' + "
      "message['content'] | trim + '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}"
      "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}" },
    { "mistral",
      {},
      "{{ bos_token }}{% set system = '' %}{% for message in messages %}{% if message['role'] == 'system' %}"
      "{% set system = message['content'] + '\\n\\n' %}{% elif message['role'] == 'user' %}"
      "{{ '[INST] ' + (system if loop.index0 < 2 else '') + message['content'] + ' [/INST]' }}{% else %}"
      "{{ ' ' + message['content'] + eos_token }}{% endif %}{% endfor %}" },
    { "gemma",
      { "<start_of_turn>", "<end_of_turn>" },
      "{{ bos_token }}{% set system = '' %}{% for message in messages %}{% if message['role'] == 'system' %}"
      "{% set system = message['content'] | trim + '\\n\\n' %}{% else %}"
      "{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else 'user') + '\\n' + "
      "(system if loop.index0 < 2 else '') + message['content'] | trim + '<end_of_turn>\\n' }}{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}" },
    { "phi3",
      { "<|user|>", "<|assistant|>", "<|end|>" },
      "{% for message in messages %}{{ '<|' + message['role'] + '|>\\n' + message['content'] + '<|end|>\\n' }}{% "
      "endfor %}"
      "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}" },
    { "zephyr",
      {},
      "{% for message in messages %}{{ '<|' + message['role'] + '|>\\n' + message['content'] + eos_token + '\\n' }}{% "
      "endfor %}"
      "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}" },
};

} // namespace

std::string named_chat_template(const std::string & name, const Tokenizer & tokenizer) {
    std::string names;
    for (const NamedTemplate & known : templates) {
        names += (names.empty() ? "" : ", ") + std::string(known.name);
        if (name != known.name) {
            continue;
        }
        for (const char * token : known.control_tokens) {
            if (!tokenizer.find_token(token)) {
                throw Error(ErrorKind::usage,
                            "chat template " + name + ": the vocabulary of this model has no " + token,
                            "use the template the model was trained with");
            }
        }
        return known.source;
    }
    try {
        const MappedFile file = MappedFile::open(name);
        return std::string(reinterpret_cast<const char *>(file.data()), file.size());
    } catch (const Error & error) {
        throw Error(ErrorKind::usage,
                    error.kind == ErrorKind::not_found
                        ? "chat template " + in_quotes(name) + ": no such file, and not a name we know"
                        : "chat template: " + error.message(),
                    "use auto, none, the path of a Jinja file, or one of " + names);
    }
}

} // namespace penelope
