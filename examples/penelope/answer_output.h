// Output of one answer: as JSON, and as a line of statistics.
#pragma once

#include "base/json.h"
#include "infer/session.h"

#include <string>

namespace penelope {

// One answer with "status":"ok".
OrderedJson answer_json(const Answer & answer, const Engine & engine, uint64_t seed);

// "23 prompt tokens | penelope, K = 5 | 46 layer applications | 41.2 ms to the first token | 8 tokens, 95.3 tokens/s"
// and " | stop" or another finish reason.
std::string stats_line(const Answer & answer);

} // namespace penelope
