#include "commands.h"

namespace penelope {

// Each is defined in the file of its name.
int cmd_convert(const Options & options, Terminal & terminal);
int cmd_quantize(const Options & options, Terminal & terminal);

const std::vector<Command> & command_table() {
    static const std::vector<Command> table = {
        { "convert", "Turn a directory into a GGUF file", "DIR -o OUT.gguf [--type T] [--base BASE.gguf] [--lora DIR]",
          "What the directory holds decides what comes out: config.json a backbone, adapter_config.json a LoRA (needs "
          "--base),\n"
          "penelope_config.json a sidecar (needs --base, takes --lora).\n",
          "penelope convert Llama-3.2-1B-Instruct -o llama-1b.gguf --type Q8_0\n"
          "penelope convert run/penelope --base llama-1b.gguf --lora run/lora -o sidecar.gguf\n",
          cmd_convert },
        { "quantize", "Write a model or adapter in another type",
          "IN OUT TYPE [--tensor-type PATTERN=TYPE] [--dry-run]",
          "Backbones, LoRAs, sidecars and bundles. Each tensor takes the type llama.cpp would give it; in a sidecar "
          "norms,\n"
          "biases, step rows and the time network stay F32.\n",
          "penelope quantize llama-1b-f32.gguf llama-1b-q4.gguf Q4_K_M\n"
          "penelope quantize base.gguf small.gguf Q4_0 --tensor-type attn_v=q8_0 --dry-run\n",
          cmd_quantize },
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
