#include "file_commands.h"

#include "base/clock.h"
#include "base/format.h"
#include "output.h"

#include <map>
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

namespace {

// "12 tensors have a row size that is not a multiple of the block size: 10 x q4_K stored as q5_0, 2 x q6_K stored as
// q8_0"
std::string fallback_summary(const std::vector<TypeFallback> & fallbacks) {
    std::map<std::string, size_t> kinds;
    for (const TypeFallback & fallback : fallbacks) {
        kinds[std::string(ggml_type_name(fallback.wanted)) + " stored as " + ggml_type_name(fallback.used)]++;
    }
    std::vector<std::string> parts;
    for (const auto & [kind, n] : kinds) {
        parts.push_back(std::to_string(n) + " x " + kind);
    }
    return std::to_string(fallbacks.size()) + (fallbacks.size() == 1 ? " tensor has" : " tensors have") +
           " a row size that is not a multiple of the block size: " + join(parts, ", ") + " (names: --json)";
}

} // namespace

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
    if (!result.fallbacks.empty()) {
        terminal.warning(fallback_summary(result.fallbacks));
    }
    terminal.line((dry ? "not written, " : "") + result.path + ": " + result.kind + ", " + result.type + ", " +
                  format_count(result.n_parameters) + " parameters in " + std::to_string(result.n_tensors) +
                  " tensors, " + format_bytes(result.bytes_out) + ", " + format_duration(result.seconds * 1000.0));
}

} // namespace penelope
