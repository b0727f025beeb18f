// A step of a latent trace as the JSON object that --trace writes and the server sends.
#pragma once

#include "base/json.h"
#include "infer/session.h"

namespace penelope {

OrderedJson trace_json(const TraceStep & step);

} // namespace penelope
