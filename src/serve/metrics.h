// Counters of the service, as Prometheus reads them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace penelope {

struct Metrics {
    std::atomic<uint64_t> prompt_tokens{ 0 };    // asked
    std::atomic<uint64_t> cached_tokens{ 0 };    // of these, not computed again
    std::atomic<uint64_t> predicted_tokens{ 0 }; // written
    std::atomic<uint64_t> latent_steps{ 0 };
    std::atomic<uint64_t> prompt_us{ 0 }; // before the first tokens
    std::atomic<uint64_t> decode_us{ 0 };
    std::atomic<uint64_t> decode_calls{ 0 };
    std::atomic<uint64_t> answers{ 0 };
    std::atomic<uint64_t> cancelled{ 0 };
    std::atomic<int64_t>  busy_slots{ 0 };
    std::atomic<int64_t>  waiting{ 0 };
    std::atomic<int64_t>  connections{ 0 };

    void        count_response(int status);
    std::string text() const; // the exposition format, version 0.0.4

  private:
    mutable std::mutex      mutex_;
    std::map<int, uint64_t> responses_; // by status
};

} // namespace penelope
