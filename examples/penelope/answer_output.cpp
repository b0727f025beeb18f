#include "answer_output.h"

#include <cmath>
#include <iomanip>
#include <sstream>

namespace penelope {

namespace {

// Three decimals: below that is noise of the clock.
double rounded(double value) {
    return std::round(value * 1000.0) / 1000.0;
}

} // namespace

OrderedJson answer_json(const Answer & answer, const Engine & engine, uint64_t seed) {
    OrderedJson object = { { "status", "ok" }, { "text", answer.text } };
    if (answer.n_reasoning > 0) {
        object["reasoning_content"] = answer.reasoning;
    }
    object.update(OrderedJson{ { "tokens", answer.tokens },
                               { "prompt_tokens", answer.n_prompt },
                               { "finish_reason", finish_reason_name(answer.finish_reason) },
                               { "method", answer.method },
                               { "K", answer.n_steps },
                               { "layer_applications", answer.layer_applications },
                               { "device", engine.split().name() },
                               { "seed", seed },
                               { "timings",
                                 { { "load_ms", rounded(engine.load_ms()) },
                                   { "prompt_ms", rounded(answer.timings.prompt_ms) },
                                   { "decode_ms", rounded(answer.timings.decode_ms) },
                                   { "tokens_per_second", rounded(answer.timings.tokens_per_second) } } } });
    return object;
}

std::string stats_line(const Answer & answer) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(1);
    out << answer.n_prompt << " prompt tokens | " << answer.method;
    if (answer.n_steps > 0) {
        out << ", K = " << answer.n_steps;
    }
    out << " | " << answer.layer_applications << " layer applications | " << answer.timings.prompt_ms
        << " ms to the first token | " << answer.tokens.size() << " tokens, " << answer.timings.tokens_per_second
        << " tokens/s | " << finish_reason_name(answer.finish_reason);
    return out.str();
}

} // namespace penelope
