// penelope info: describes a GGUF file.
#include "commands.h"
#include "model_setup.h"
#include "output.h"

#include "convert/describe.h"
#include "model/load.h"

namespace penelope {

int cmd_info(const Options & options, Terminal & terminal) {
    FileDescription          file = describe_file(options.required("file"), options.flag("tensors"));
    std::vector<std::string> placement; // layers per device with --split
    if (const std::string text = wanted_split(options); !text.empty()) {
        const LayerSizes sizes = layer_sizes(GgufReader::open(options.required("file")));
        placement              = describe(split_layers(text, list_devices(), sizes), sizes);
    }
    if (options.flag("json")) {
        OrderedJson object{ { "status", "ok" } };
        object.update(file.json);
        if (!placement.empty()) {
            object["placement"] = placement;
        }
        terminal.line(dump_json(object));
    } else {
        terminal.write(file.text);
        if (!placement.empty()) {
            terminal.line("\nplacement");
        }
        for (const std::string & line : placement) {
            terminal.line("  " + line);
        }
    }
    return 0;
}

} // namespace penelope
