// Prometheus metrics of the server.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace penelope {

struct Metrics {
    std::atomic<uint64_t> prompt_tokens{ 0 };    // of all requests
    std::atomic<uint64_t> cached_tokens{ 0 };    // of these, taken from the KV cache
    std::atomic<uint64_t> predicted_tokens{ 0 }; // generated
    std::atomic<uint64_t> latent_steps{ 0 };
    std::atomic<uint64_t> prompt_us{ 0 }; // until the first token
    std::atomic<uint64_t> decode_us{ 0 };
    std::atomic<uint64_t> decode_calls{ 0 };
    std::atomic<uint64_t> answers{ 0 };
    std::atomic<uint64_t> cancelled{ 0 };
    std::atomic<int64_t>  busy_slots{ 0 };
    std::atomic<int64_t>  waiting{ 0 };
    std::atomic<int64_t>  connections{ 0 };

    void        count_response(int status);
    std::string text() const; // Prometheus text format 0.0.4

  private:
    mutable std::mutex      mutex_;
    std::map<int, uint64_t> responses_; // by HTTP status
};

} // namespace penelope
