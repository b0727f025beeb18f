#include "file_commands.h"

#include "base/clock.h"
#include "base/format.h"
#include "output.h"

#include <memory>

namespace penelope {

StreamOptions stream_options(const Options & options, Terminal & terminal) {
    StreamOptions stream;
    stream.n_threads = static_cast<int>(options.integer("threads"));
    stream.cancelled = [] { return interrupt_count() > 0; };
    if (terminal.err_is_tty() && !terminal.quiet()) {
        const auto clock = std::make_shared<Stopwatch>();
        const auto shown = std::make_shared<double>(-1000.0);
        stream.progress  = [clock, shown, &terminal](const StreamProgress & progress) {
            const double ms = clock->elapsed_ms();
            if (ms - *shown < 100.0) {
                return;
            }
            *shown             = ms;
            const double done  = static_cast<double>(progress.bytes_done);
            const double total = static_cast<double>(progress.bytes_total);
            std::string  text  = std::to_string(progress.i_tensor) + "/" + std::to_string(progress.n_tensors) +
                               " tensors | " + format_bytes(progress.bytes_done) + " of " +
                               format_bytes(progress.bytes_total);
            if (ms > 500.0 && done > 0) {
                text += " | " + format_bytes(static_cast<uint64_t>(done / ms * 1000.0)) + "/s | " +
                        format_duration(ms * (total - done) / done) + " left";
            }
            terminal.progress(text);
        };
    }
    return stream;
}

void report_file(const FileResult & result, const Options & options, Terminal & terminal, bool dry) {
    terminal.progress("");
    if (options.flag("json")) {
        OrderedJson fallbacks = OrderedJson::array();
        for (const TypeFallback & fallback : result.fallbacks) {
            fallbacks.push_back({ { "name", fallback.name },
                                  { "wanted", ggml_type_name(fallback.wanted) },
                                  { "used", ggml_type_name(fallback.used) } });
        }
        terminal.line(dump_json(OrderedJson{ { "status", "ok" },
                                             { "kind", result.kind },
                                             { "path", result.path },
                                             { "written", !dry },
                                             { "type", result.type },
                                             { "tensors", result.n_tensors },
                                             { "parameters", result.n_parameters },
                                             { "bytes_in", result.bytes_in },
                                             { "bytes_out", result.bytes_out },
                                             { "seconds", result.seconds },
                                             { "fallbacks", fallbacks } }));
        return;
    }
    for (const TypeFallback & fallback : result.fallbacks) {
        terminal.warning(fallback.name + ": its rows do not fit " + ggml_type_name(fallback.wanted) + ", stored as " +
                         ggml_type_name(fallback.used));
    }
    terminal.line((dry ? "not written, " : "") + result.path + ": " + result.kind + ", " + result.type + ", " +
                  format_count(result.n_parameters) + " parameters in " + std::to_string(result.n_tensors) +
                  " tensors, " + format_bytes(result.bytes_out) + ", " + format_duration(result.seconds * 1000.0));
}

} // namespace penelope
