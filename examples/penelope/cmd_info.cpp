// penelope info: what a file is, what it fits and how much memory it needs.
#include "commands.h"
#include "output.h"

#include "convert/describe.h"

namespace penelope {

int cmd_info(const Options & options, Terminal & terminal) {
    FileDescription file = describe_file(options.required("file"), options.flag("tensors"));
    if (options.flag("json")) {
        OrderedJson object{ { "status", "ok" } };
        object.update(file.json);
        terminal.line(dump_json(object));
    } else {
        terminal.write(file.text);
    }
    return 0;
}

} // namespace penelope
