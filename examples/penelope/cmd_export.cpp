// penelope export: sidecar, LoRA or backbone to the formats of PyTorch and llama.cpp.
#include "commands.h"
#include "file_commands.h"

namespace penelope {

int cmd_export(const Options & options, Terminal & terminal) {
    ExportOptions exported;
    exported.in_path   = options.required("file");
    exported.out_path  = options.required("out");
    exported.as        = options.required("as");
    exported.base_path = options.text("model");
    exported.type      = options.text("type");
    exported.force     = options.flag("force");
    exported.stream    = stream_options(options, terminal);

    const InterruptDeferral hold(InterruptDeferral::all_signals);
    report_file(export_sidecar(exported), options, terminal);
    return 0;
}

} // namespace penelope
