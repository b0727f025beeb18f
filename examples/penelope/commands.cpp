#include "commands.h"

namespace penelope {

// Each is defined in the file of its name.
int cmd_convert(const Options & options, Terminal & terminal);

const std::vector<Command> & command_table() {
    static const std::vector<Command> table = {
        { "convert", "Turn a directory into a GGUF file", "DIR -o OUT.gguf [--type T] [--base BASE.gguf] [--lora DIR]",
          "What the directory holds decides what comes out: config.json a backbone, adapter_config.json a LoRA (needs "
          "--base),\n"
          "penelope_config.json a sidecar (needs --base, takes --lora).\n",
          "penelope convert Llama-3.2-1B-Instruct -o llama-1b.gguf --type Q8_0\n"
          "penelope convert run/penelope --base llama-1b.gguf --lora run/lora -o sidecar.gguf\n",
          cmd_convert },
    };
    return table;
}

const Command * find_command(std::string_view name) {
    for (const Command & command : command_table()) {
        if (name == command.name) {
            return &command;
        }
    }
    return nullptr;
}

} // namespace penelope
