#include "serve/metrics.h"

#include <sstream>

namespace penelope {

void Metrics::count_response(int status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    responses_[status]++;
}

std::string Metrics::text() const {
    std::ostringstream out;
    const auto         head = [&](const char * name, const char * type, const char * help) {
        out << "# HELP penelope:" << name << " " << help << "\n# TYPE penelope:" << name << " " << type << "\n";
    };
    const auto put = [&](const char * name, const char * type, const char * help, double value) {
        head(name, type, help);
        out << "penelope:" << name << " " << value << "\n";
    };
    out.precision(15);
    put("prompt_tokens_total", "counter", "Prompt tokens of all requests.", double(prompt_tokens));
    put("prompt_tokens_kept_total", "counter", "Prompt tokens taken from the KV cache.", double(cached_tokens));
    put("tokens_predicted_total", "counter", "Tokens written.", double(predicted_tokens));
    put("latent_steps_total", "counter", "Latent steps taken.", double(latent_steps));
    put("prompt_seconds_total", "counter", "Time to first token, summed.", double(prompt_us) / 1e6);
    put("decode_seconds_total", "counter", "Time spent decoding.", double(decode_us) / 1e6);
    put("decode_calls_total", "counter", "Decode batches, each for all busy slots.", double(decode_calls));
    put("answers_total", "counter", "Answers completed.", double(answers));
    put("answers_cancelled_total", "counter", "Answers cancelled because the client disconnected.", double(cancelled));
    put("slots_busy", "gauge", "Slots that generate an answer.", double(busy_slots));
    put("requests_waiting", "gauge", "Answers waiting for a slot.", double(waiting));
    put("connections", "gauge", "Open connections.", double(connections));
    head("responses_total", "counter", "Responses by HTTP status.");
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto & [status, n] : responses_) {
        out << "penelope:responses_total{status=\"" << status << "\"} " << n << "\n";
    }
    return out.str();
}

} // namespace penelope
