// penelope convert: Hugging Face, PEFT or Penelope directory to GGUF.
#include "commands.h"
#include "file_commands.h"

namespace penelope {

int cmd_convert(const Options & options, Terminal & terminal) {
    ConvertOptions convert;
    convert.dir       = options.required("dir");
    convert.out_path  = options.required("out");
    convert.type      = options.text("type");
    convert.base_path = options.text("base");
    convert.lora_dir  = options.text("lora");
    convert.force     = options.flag("force");
    convert.stream    = stream_options(options, terminal);

    const InterruptDeferral hold(InterruptDeferral::all_signals);
    report_file(convert_directory(convert), options, terminal);
    return 0;
}

} // namespace penelope
