// penelope report: a Markdown page with tables and SVG charts of training runs and evaluations.
#include "commands.h"
#include "output.h"

#include "report/report.h"

namespace penelope {

int cmd_report(const Options & options, Terminal & terminal) {
    options.required("input");
    std::vector<ReportInput> inputs;
    for (const std::string & text : options.list("input")) {
        inputs.push_back(parse_report_input(text));
    }
    const ReportFiles files = write_report(inputs, options.required("out"), options.flag("force"));
    if (options.flag("json")) {
        terminal.line(dump_json(OrderedJson{ { "status", "ok" }, { "page", files.page }, { "charts", files.charts } }));
    } else {
        terminal.line(files.page);
    }
    return 0;
}

} // namespace penelope
