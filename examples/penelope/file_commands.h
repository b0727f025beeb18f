// What convert, quantize and export share: progress, Ctrl-C and the report on the file written.
#pragma once

#include "convert/convert.h"
#include "interrupt.h"
#include "options.h"
#include "terminal.h"

namespace penelope {

// Thread count, a progress line, and cancellation on the first Ctrl-C. The terminal must outlive the result.
StreamOptions stream_options(const Options & options, Terminal & terminal);

// Prints one line, or one JSON object with --json, and a warning for tensors that got another type than requested.
// dry: nothing was written.
void report_file(const FileResult & result, const Options & options, Terminal & terminal, bool dry = false);

} // namespace penelope
