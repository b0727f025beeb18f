// The device that tests of the device suite run on, and how near to the reference it has to come.
//
//   PENELOPE_TEST_DEVICE   as --device takes it, or split:LIST with LIST as --split takes it; the CPU unless set
//   PENELOPE_TEST_RPC      as --rpc takes it
//   PENELOPE_TEST_F16      set: the device may multiply in 16 bits
#pragma once

#include "base/format.h"
#include "graph/device.h"
#include "graph/ggml_abort.h"
#include "graph/rpc.h"
#include "infer/session.h"
#include "method/method.h"
#include "support/difference.h"
#include "support/golden.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace penelope::test {

inline std::string device_name() {
    const char * name = std::getenv("PENELOPE_TEST_DEVICE");
    if (name && std::string(name) == "auto") { // also asked before doctest runs
        std::fprintf(stderr, "PENELOPE_TEST_DEVICE: name a device, auto may be the CPU\n");
        std::exit(1);
    }
    return name && *name ? name : "CPU";
}

// Cases a device is compared on. The last four were never measured on other devices than the CPU, which have wider
// bounds.
inline std::vector<std::string> device_cases() {
    std::vector<std::string> cases = kTrajectoryCases;
    if (device_name() != "CPU") {
        cases.resize(cases.size() - 4);
    }
    return cases;
}

inline constexpr std::string_view kSplit = "split:";

inline bool is_split(const std::string & device) {
    return device.rfind(kSplit, 0) == 0;
}

inline void connect_servers() {
    static bool  done = false;
    const char * text = std::getenv("PENELOPE_TEST_RPC");
    if (text && *text && !done) {
        set_fatal_error_handler([](const Error & error) {
            std::fprintf(stderr, "error: %s\n", error.what());
            std::exit(1);
        });
        add_rpc_servers(split(text, ','));
    }
    done = true;
}

inline bool has_16_bit_products() {
    const char * text = std::getenv("PENELOPE_TEST_F16");
    return text && *text && std::string(text) != "0";
}

// On states of scale 3.
inline float tolerance() {
    return has_16_bit_products() ? 2e-2f : 2e-4f;
}

// Greedy tokens by the logits of each step: equal up to the first choice that is closer than the tolerance allows to
// tell.
inline bool same_choice(const std::vector<float> & found, const std::vector<float> & expected) {
    const auto best   = std::max_element(expected.begin(), expected.end());
    const auto chosen = std::max_element(found.begin(), found.end()) - found.begin();
    return *best - expected[size_t(chosen)] <= 2 * tolerance();
}

inline const GoldenCase & golden(const std::string & name) {
    static std::map<std::string, std::unique_ptr<GoldenCase>> cases;
    auto &                                                    found = cases[name];
    if (!found) {
        found = std::make_unique<GoldenCase>(name);
    }
    return *found;
}

inline std::shared_ptr<const Engine> load(const std::string & device, const std::string & base,
                                          const std::string & sidecar) {
    LoadOptions options;
    options.base    = base;
    options.sidecar = sidecar;
    options.device  = device;
    connect_servers();
    if (is_split(device)) {
        options.device = "auto";
        options.split  = device.substr(kSplit.size());
    }
    return Engine::load(options);
}

inline SessionOptions session_options(ggml_type kv_type, int n_ctx = 128, int n_streams = 1) {
    SessionOptions options;
    options.n_ctx     = n_ctx;
    options.kv_type   = kv_type;
    options.n_streams = n_streams;
    options.n_threads = 2;
    return options;
}

} // namespace penelope::test
