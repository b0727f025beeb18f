// CODI's files: the input embeddings of its two markers, and the projection between a state and the next thought.
#include "gguf/keys.h"
#include "sidecar/method_format.h"

namespace penelope {

namespace {

std::vector<TensorShape> tensors(const SidecarConfig & config, int64_t d) {
    const int64_t p = config.projection_width;
    return {
        { "codi.token.rows", { d, 2 }, TensorInit::anchor }, // begin, end
        { "codi.proj.in.weight", { d, p }, TensorInit::uniform, d, true },
        { "codi.proj.in.bias", { p }, TensorInit::uniform, d },
        { "codi.proj.out.weight", { p, d }, TensorInit::uniform, p, true },
        { "codi.proj.out.bias", { d }, TensorInit::uniform, p },
        { "codi.proj.norm.weight", { d }, TensorInit::ones },
        { "codi.proj.norm.bias", { d }, TensorInit::zeros },
    };
}

void check(const SidecarConfig &, const std::string &) {}

int layer_applications(const SidecarConfig & config, int n_steps) {
    return (n_steps + 2) * int(config.base.block_count);
}

std::pair<std::string, std::string> summary(const SidecarConfig & config) {
    return { "thoughts", "through all " + std::to_string(config.base.block_count) +
                             " layers and a projection of width " + std::to_string(config.projection_width) };
}

} // namespace

const MethodFormat codi_format{
    "codi",
    { { "k_max", "k-max", keys::penelope_k_max, &SidecarConfig::k_max },
      { "k_default", nullptr, keys::penelope_k_default, &SidecarConfig::k_default, nullptr, true },
      { "projection_length", "projection-width", keys::penelope_projection_length, &SidecarConfig::projection_width } },
    tensors,
    check,
    layer_applications,
    summary,
};

} // namespace penelope
