// penelope learn: from a file of examples to a trained and scored model with a verdict, in one command.
#include "commands.h"
#include "interrupt.h"
#include "learn_output.h"

#include "base/format.h"
#include "learn/learn.h"

#include <cstdlib>
#include <filesystem>

namespace penelope {

namespace {

// "90s", "60m", "1.5h"; a number alone is minutes.
double parse_time(const std::string & text) {
    char *            end   = nullptr;
    const double      value = std::strtod(text.c_str(), &end);
    const std::string unit  = end;
    const double factor = unit == "s" ? 1 : unit == "m" || unit == "min" || unit.empty() ? 60 : unit == "h" ? 3600 : 0;
    if (text.empty() || end == text.c_str() || !(value > 0) || factor == 0 || value * factor > 365.0 * 86400) {
        throw UsageError("--time: " + in_quotes(text) + " is not a time", "e.g. 90s, 60m or 2h");
    }
    return value * factor;
}

LearnOptions read_learn_options(const Options & options) {
    LearnOptions o;
    o.data         = options.required("file");
    o.base         = options.text("model");
    o.from_scratch = options.text("from-scratch");
    o.out          = options.text("out");
    o.seconds      = parse_time(options.text("time"));
    o.is_paper     = options.text("protocol") == "paper";
    o.with_latent  = !options.flag("no-latent");
    o.with_control = !options.flag("no-control");
    o.seed         = static_cast<uint64_t>(options.integer("seed"));
    o.force        = options.flag("force");
    if (o.base.empty() == o.from_scratch.empty()) {
        throw UsageError(o.base.empty() ? "learn: no model given" : "-m and --from-scratch: exclude each other",
                         "give -m BASE.gguf, or --from-scratch tiny for a new small model");
    }
    if (o.is_paper && options.given("time")) {
        throw UsageError("--time and --protocol paper: exclude each other", "the protocol fixes the number of updates");
    }
    if (o.out.empty()) {
        std::filesystem::path name = std::filesystem::path(o.data);
        name                       = name.has_filename() ? name.stem() : name.parent_path().filename();
        o.out                      = (std::filesystem::path("runs") / name).string();
    }
    return o;
}

} // namespace

int cmd_learn(const Options & options, Terminal & terminal) {
    const LearnOptions      how = read_learn_options(options);
    const Backend           backend(find_device(options.text("device")), static_cast<int>(options.integer("threads")));
    const InterruptDeferral hold(InterruptDeferral::all_signals);
    LearnEvents             events = learn_events(options, terminal);
    events.stop                    = [] { return interrupt_count() > 0; };
    const LearnResult result       = learn(how, backend, events);
    terminal.progress("");
    if (result.interrupted) {
        throw Error(ErrorKind::cancelled, "interrupted; everything so far is saved in " + how.out,
                    "the same command goes on where it stopped");
    }
    show_learned(result, options, terminal);
    return 0;
}

} // namespace penelope
