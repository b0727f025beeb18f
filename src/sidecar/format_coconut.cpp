// Coconut's files: the input embeddings of its two markers.
#include "gguf/keys.h"
#include "sidecar/method_format.h"

namespace penelope {

namespace {

std::vector<TensorShape> tensors(const SidecarConfig &, int64_t d) {
    return { { "coconut.token.rows", { d, 2 }, TensorInit::anchor } }; // start, end
}

void check(const SidecarConfig &, const std::string &) {}

int layer_applications(const SidecarConfig & config, int n_steps) {
    return (n_steps + 2) * int(config.base.block_count);
}

std::pair<std::string, std::string> summary(const SidecarConfig & config) {
    return { "thoughts", "through all " + std::to_string(config.base.block_count) + " layers" };
}

} // namespace

const MethodFormat coconut_format{
    "coconut",
    { { "k_max", "k-max", keys::penelope_k_max, &SidecarConfig::k_max },
      { "k_default", nullptr, keys::penelope_k_default, &SidecarConfig::k_default, nullptr, true } },
    tensors,
    check,
    layer_applications,
    summary,
};

} // namespace penelope
