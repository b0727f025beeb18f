// The keys of a GGUF file as one JSON object. Of long arrays and texts only the beginning is shown.
#pragma once

#include "base/json.h"

namespace penelope {

class GgufReader;

OrderedJson metadata_of(const GgufReader & file);

} // namespace penelope
