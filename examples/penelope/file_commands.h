// What convert, quantize and export share: progress, Ctrl-C and the report on the file written.
#pragma once

#include "convert/convert.h"
#include "interrupt.h"
#include "options.h"
#include "terminal.h"

namespace penelope {

// Threads, a progress line with size, rate and time left, and an end at the first Ctrl-C. The terminal outlives it.
StreamOptions stream_options(const Options & options, Terminal & terminal);

// One line on stdout, or one object with --json; tensors that took another type than asked for go to stderr. `dry`:
// nothing was written.
void report_file(const FileResult & result, const Options & options, Terminal & terminal, bool dry = false);

} // namespace penelope
