// Where prompts come from: -p, -f, --batch or stdin.
#pragma once

#include "base/json.h"
#include "options.h"
#include "terminal.h"

#include <string>
#include <vector>

namespace penelope {

struct PromptInput {
    OrderedJson id; // of a --batch line, else its number from 0; null for a single prompt
    std::string text;
};

// Exactly one for -p, -f and stdin; any number for --batch, all lines checked. Throws UsageError when sources
// contradict each other and Error naming file and line for what cannot be read.
std::vector<PromptInput> read_prompts(const Options & options, Terminal & terminal);

// A whole file, or standard input for "-". Throws Error naming the file.
std::string read_text(const std::string & path);

} // namespace penelope
