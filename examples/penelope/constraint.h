// What --json-schema and --grammar ask of answers.
#pragma once

#include "grammar/grammar.h"
#include "options.h"

#include <memory>

namespace penelope {

// Null when nothing is asked. Throws UsageError for a text that is wrong or when several are given, Error for a file that is.
std::shared_ptr<const Grammar> read_constraint(const Options & options);

} // namespace penelope
