// Penelope's files: the interval, the sizes of its modules, and their tensors.
#include "base/error.h"
#include "base/format.h"
#include "gguf/keys.h"
#include "sidecar/method_format.h"

namespace penelope {

namespace {

std::vector<TensorShape> tensors(const SidecarConfig & c, int64_t d) {
    std::vector<TensorShape> all;
    const auto               rows = [&](const std::string & name, int64_t n, TensorInit start) {
        all.push_back({ "penelope." + name, { d, n }, start });
    };
    const auto linear = [&](const std::string & name, int64_t n_in, int64_t n_out, TensorInit start, bool is_matrix) {
        all.push_back({ "penelope." + name + ".weight", { n_in, n_out }, start, n_in, is_matrix });
        all.push_back({ "penelope." + name + ".bias", { n_out }, start, n_in });
    };
    const auto norm = [&](const std::string & name) {
        all.push_back({ "penelope." + name + ".weight", { d }, TensorInit::ones });
        all.push_back({ "penelope." + name + ".bias", { d }, TensorInit::zeros });
    };
    const auto gru = [&](const std::string & name) { // rows r, z, n
        linear(name + ".input", d, 3 * d, TensorInit::uniform, true);
        linear(name + ".hidden", d, 3 * d, TensorInit::uniform, true);
    };
    rows("memory.anchor", c.n_memory, TensorInit::anchor_noise);
    rows("memory.group", c.n_memory, TensorInit::noise);
    rows("memory.step", c.k_max, TensorInit::noise);
    rows("readout.anchor", c.n_readout, TensorInit::anchor_noise);
    rows("readout.step", c.k_max, TensorInit::noise);
    linear("time.in", 2, c.time_width, TensorInit::uniform, false);
    // Modulation and adapter start as the identity. Rows of time.out: gamma (d), beta (d), s (1).
    linear("time.out", c.time_width, 2 * d + 1, TensorInit::zeros, false);
    norm("adapter.norm");
    linear("adapter.down", d, c.adapter_width, TensorInit::uniform, true);
    linear("adapter.up", c.adapter_width, d, TensorInit::zeros, true);
    gru("memory.gru");
    norm("readout.proj.norm");
    linear("readout.proj", d, c.n_readout * d, TensorInit::uniform, true);
    gru("readout.gru");
    return all;
}

void check(const SidecarConfig & config, const std::string & origin) {
    if (config.interval_start >= config.interval_end || config.interval_end > config.base.block_count) {
        const std::string n_layers = std::to_string(config.base.block_count);
        throw Error(ErrorKind::format,
                    origin + ": interval [" + std::to_string(config.interval_start) + ", " +
                        std::to_string(config.interval_end) + ") does not lie in the " + n_layers +
                        " layers of the base",
                    "an interval S:E needs 0 <= S < E <= " + n_layers);
    }
    if (config.transition != "gru" && config.transition != "overwrite") {
        throw Error(ErrorKind::format,
                    origin + ": transition " + in_quotes(config.transition) + " is neither 'gru' nor 'overwrite'");
    }
}

int layer_applications(const SidecarConfig & config, int n_steps) {
    return int(config.base.block_count) + (n_steps + 1) * int(config.interval_end - config.interval_start);
}

std::pair<std::string, std::string> summary(const SidecarConfig & config) {
    return { "interval",
             "layers [" + std::to_string(config.interval_start) + ", " + std::to_string(config.interval_end) + ") of " +
                 std::to_string(config.base.block_count) + ", " + std::to_string(config.n_memory) + " memory and " +
                 std::to_string(config.n_readout) + " readout positions, " + config.transition + " transition" };
}

} // namespace

const MethodFormat penelope_format{
    "penelope",
    { { "interval", "interval", keys::penelope_interval_start, &SidecarConfig::interval_start, nullptr, true,
        keys::penelope_interval_end, &SidecarConfig::interval_end },
      { "memory_count", "memory", keys::penelope_memory_count, &SidecarConfig::n_memory },
      { "readout_count", "readout", keys::penelope_readout_count, &SidecarConfig::n_readout },
      { "k_max", "k-max", keys::penelope_k_max, &SidecarConfig::k_max },
      { "k_default", nullptr, keys::penelope_k_default, &SidecarConfig::k_default, nullptr, true },
      { "time_length", "time-width", keys::penelope_time_length, &SidecarConfig::time_width },
      { "adapter_length", "adapter-width", keys::penelope_adapter_length, &SidecarConfig::adapter_width },
      { "transition", "transition", keys::penelope_transition, nullptr, &SidecarConfig::transition } },
    tensors,
    check,
    layer_applications,
    summary,
};

} // namespace penelope
