#include "model/layer_split.h"

#include "base/format.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace penelope {

namespace {

// Fraction of a device's free memory for weights; KV cache and compute buffers need the rest.
constexpr double kWeightFraction = 0.8;

const char * const kHint = "--split CPU=10,RPC0=20 gives layers in this order; --split CPU,RPC0 shares them by free "
                           "memory; --split memory takes every device";

struct Share {
    DeviceInfo device;
    int        n_layers = -1; // -1: not given
};

[[noreturn]] void refuse(const std::string & text, const std::string & why, const std::string & hint = kHint) {
    throw Error(ErrorKind::usage, "--split " + text + ": " + why, hint);
}

DeviceInfo find(const std::string & name, const std::vector<DeviceInfo> & known, const std::string & text) {
    std::vector<std::string> names;
    for (const DeviceInfo & device : known) {
        if (to_lower(device.name) == to_lower(name)) {
            return device;
        }
        names.push_back(device.name);
    }
    refuse(text, in_quotes(name) + " is no device", "known devices: " + join(names, ", "));
}

std::vector<Share> parse(const std::string & text, const std::vector<DeviceInfo> & known) {
    std::vector<Share> shares;
    for (const std::string & part : split(text, ',')) {
        const size_t equals = part.find('=');
        Share        share{ find(part.substr(0, equals), known, text), -1 };
        if (equals != std::string::npos) {
            const char * first  = part.data() + equals + 1;
            const char * last   = part.data() + part.size();
            const auto   result = std::from_chars(first, last, share.n_layers);
            if (result.ec != std::errc() || result.ptr != last || share.n_layers < 1) {
                refuse(text, in_quotes(part.substr(equals + 1)) + " is no number of layers");
            }
        }
        const bool is_known = std::any_of(shares.begin(), shares.end(),
                                          [&](const Share & one) { return one.device.dev == share.device.dev; });
        if (is_known) {
            refuse(text, share.device.name + " is named twice");
        }
        if (!shares.empty() && (shares.front().n_layers < 0) != (share.n_layers < 0)) {
            refuse(text, "some devices have a number of layers and some have none");
        }
        shares.push_back(share);
    }
    return shares;
}

size_t total(const LayerSizes & sizes) {
    return std::accumulate(sizes.layers.begin(), sizes.layers.end(), sizes.embedding + sizes.head);
}

// Bytes of layers [first, last), including the embedding and the head where they belong.
size_t bytes_of(const LayerSizes & sizes, size_t first, size_t last) {
    size_t n = first == 0 ? sizes.embedding : 0;
    n += last == sizes.layers.size() ? sizes.head : 0;
    return std::accumulate(sizes.layers.begin() + ptrdiff_t(first), sizes.layers.begin() + ptrdiff_t(last), n);
}

// Layer counts whose bytes are in proportion to `memories`, at least one each.
std::vector<int> by_free_memory(const std::vector<double> & memories, const LayerSizes & sizes) {
    const size_t     n_layer = sizes.layers.size(), n = memories.size();
    const double     all = std::accumulate(memories.begin(), memories.end(), 0.0), bytes = double(total(sizes));
    std::vector<int> counts;
    double           until = 0; // bytes up to the end of this device's layers
    size_t           next  = 0;
    for (size_t i = 0; i < n; i++) {
        until += memories[i] / all * bytes;
        const size_t first = next, left_for_others = n - 1 - i;
        next++;
        while (next + left_for_others < n_layer &&
               (i + 1 == n || double(bytes_of(sizes, 0, next)) + double(sizes.layers[next]) / 2 <= until)) {
            next++;
        }
        counts.push_back(int(next - first));
    }
    return counts;
}

double usable_memory(const DeviceInfo & device) {
    return kWeightFraction * double(device.memory_free);
}

// All GPUs and RPC devices; the CPU too if the model does not fit on them.
std::vector<Share> by_memory(const std::vector<DeviceInfo> & known, const LayerSizes & sizes,
                             const std::string & text) {
    std::vector<Share> shares;
    double             all = 0;
    for (const DeviceInfo & device : known) {
        if (!device.is_cpu) {
            shares.push_back({ device });
            all += usable_memory(device);
        }
    }
    const auto cpu = std::find_if(known.begin(), known.end(), [](const DeviceInfo & one) { return one.is_cpu; });
    if (cpu != known.end() && !shares.empty() && all < double(total(sizes))) {
        shares.push_back({ *cpu });
        shares.back().device.memory_free =
            std::min(cpu->memory_free, size_t((double(total(sizes)) - all) / kWeightFraction));
    }
    if (shares.empty()) {
        refuse(text, "there is no device but the CPU", "--rpc HOST:PORT brings in other machines; see --list-devices");
    }
    return shares;
}

} // namespace

bool LayerSplit::is_all_cpu() const {
    return std::all_of(devices.begin(), devices.end(), [](const DeviceInfo & device) { return device.is_cpu; });
}

std::string LayerSplit::name() const {
    std::vector<std::string> names;
    for (const DeviceInfo & device : devices) {
        names.push_back(device.name);
    }
    return join(names, "+");
}

LayerSplit split_layers(const std::string & text, const std::vector<DeviceInfo> & known, const LayerSizes & sizes) {
    const int          n_layer = int(sizes.layers.size());
    const bool         is_all  = to_lower(text) == "memory" || to_lower(text) == "auto";
    std::vector<Share> shares  = is_all ? by_memory(known, sizes, text) : parse(text, known);
    if (shares.empty()) {
        refuse(text, "names no device");
    }
    if (int(shares.size()) > n_layer) {
        refuse(text,
               std::to_string(shares.size()) + " devices, but the model has " + std::to_string(n_layer) + " layers");
    }
    if (shares.front().n_layers < 0) {
        std::vector<double> memories;
        for (const Share & share : shares) {
            memories.push_back(usable_memory(share.device));
        }
        const std::vector<int> counts = by_free_memory(memories, sizes);
        for (size_t i = 0; i < shares.size(); i++) {
            shares[i].n_layers = counts[i];
        }
    }
    LayerSplit result;
    for (const Share & share : shares) {
        const size_t first  = result.layers.size();
        const size_t last   = std::min(first + size_t(share.n_layers), size_t(n_layer));
        const size_t needed = bytes_of(sizes, first, last);
        const size_t free   = find(share.device.name, known, text).memory_free;
        if (free > 0 && needed > free) {
            throw Error(ErrorKind::memory,
                        "--split " + text + ": " + std::to_string(last - first) + " layers are " +
                            format_bytes(needed) + ", " + share.device.name + " has " + format_bytes(free) + " free",
                        "give it fewer layers");
        }
        result.layers.insert(result.layers.end(), size_t(share.n_layers), int(result.devices.size()));
        result.devices.push_back(share.device);
    }
    if (int(result.layers.size()) != n_layer) {
        refuse(text, "gives out " + std::to_string(result.layers.size()) + " layers, the model has " +
                         std::to_string(n_layer));
    }
    return result;
}

std::vector<std::string> describe(const LayerSplit & split, const LayerSizes & sizes) {
    std::vector<std::string> lines;
    const size_t             n_layer = sizes.layers.size();
    for (size_t first = 0; first < n_layer;) {
        const int part = split.device_of(int(first));
        size_t    last = first;
        while (last < n_layer && split.device_of(int(last)) == part) {
            last++;
        }
        std::string text = last - first == 1 ? "layer " + std::to_string(first)
                                             : "layers " + std::to_string(first) + "-" + std::to_string(last - 1);
        text += first == 0 ? ", embedding" : "";
        text += last == n_layer ? ", head" : "";
        const DeviceInfo & device = split.devices[size_t(part)];
        lines.push_back(text + " on " + device.name + " (" + device.description + "), " +
                        format_bytes(bytes_of(sizes, first, last)));
        first = last;
    }
    return lines;
}

} // namespace penelope
