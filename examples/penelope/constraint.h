// The grammar of --json-schema and --grammar, which constrains sampling.
#pragma once

#include "grammar/grammar.h"
#include "options.h"

#include <memory>

namespace penelope {

// Null if none is given. Throws UsageError for invalid text or more than one constraint, Error for an invalid file.
std::shared_ptr<const Grammar> read_constraint(const Options & options);

} // namespace penelope
