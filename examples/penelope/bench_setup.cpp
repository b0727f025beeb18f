#include "bench_setup.h"

#include "model_setup.h"

#include "infer/random_engine.h"
#include "method/registry.h"

#include <algorithm>
#include <cstdio>

namespace penelope {

bool BenchMethod::visible() const {
    return is_visible_method(name);
}

std::vector<BenchMethod> parse_methods(const std::string & text) {
    std::vector<BenchMethod> choices;
    for (size_t start = 0; start < text.size();) {
        const size_t      end   = std::min(text.find(',', start), text.size());
        const std::string part  = text.substr(start, end - start);
        const size_t      colon = part.find(':');
        int               count = 0;
        char              rest  = 0;
        if (colon == std::string::npos || std::sscanf(part.c_str() + colon + 1, "%d%c", &count, &rest) != 1 ||
            count < 0) {
            throw UsageError("--methods: '" + part + "' is not METHOD:COUNT",
                             "e.g. --methods penelope:5,coconut:8,cot:69");
        }
        choices.push_back({ part.substr(0, colon), count });
        start = end + 1;
    }
    return choices;
}

namespace {

RandomEngineOptions random_options(const Options & options, int k_max) {
    RandomEngineOptions random;
    random.base             = options.text("model");
    random.shape            = options.text("shape");
    random.type             = options.text("type");
    random.device           = options.text("device");
    random.split            = wanted_split(options);
    random.k_max            = std::max(random.k_max, k_max);
    const std::string range = options.text("interval");
    char              rest  = 0;
    if (!range.empty() && std::sscanf(range.c_str(), "%d:%d%c", &random.start, &random.end, &rest) != 2) {
        throw UsageError("--interval: '" + range + "' is not S:E", "layers S to E - 1, e.g. --interval 11:16");
    }
    return random;
}

} // namespace

std::shared_ptr<const Engine> bench_engine(const Options & options, const std::vector<BenchMethod> & methods,
                                           Terminal & terminal) {
    if (options.given("model") == options.given("shape")) {
        throw UsageError("bench: give exactly one of --model and --shape",
                         "penelope bench -m BASE, or penelope bench --shape llama-3.2-1b");
    }
    int  k_max  = 0;
    bool latent = false;
    for (const BenchMethod & choice : methods) {
        k_max  = choice.visible() ? k_max : std::max(k_max, choice.count);
        latent = latent || !choice.visible();
    }
    if (options.given("model") && (!latent || options.given("sidecar"))) {
        return load_engine(options, terminal);
    }
    RandomEngineOptions random = random_options(options, k_max);
    if (!latent) {
        random.lora_rank = 0;
    }
    return random_engine(random);
}

} // namespace penelope
