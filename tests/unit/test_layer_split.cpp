#include <doctest/doctest.h>

#include "model/layer_split.h"

using namespace penelope;

namespace {

// Devices by name and free memory; only names and numbers are looked at.
DeviceInfo device(const char * name, size_t free, bool is_cpu = false) {
    static std::vector<std::unique_ptr<int>> handles;
    handles.push_back(std::make_unique<int>());
    DeviceInfo info{};
    info.name        = name;
    info.memory_free = info.memory_total = free;
    info.is_cpu                          = is_cpu;
    info.dev                             = reinterpret_cast<ggml_backend_dev_t>(handles.back().get());
    return info;
}

const std::vector<DeviceInfo> & known() {
    static const std::vector<DeviceInfo> all{ device("CPU", 1000000, true), device("GPU0", 1000),
                                              device("RPC0", 3000) };
    return all;
}

LayerSizes layers(size_t n, size_t each, size_t ends = 0) {
    LayerSizes sizes;
    sizes.layers.assign(n, each);
    sizes.embedding = sizes.head = ends;
    return sizes;
}

std::vector<int> counts(const LayerSplit & split) {
    std::vector<int> n(split.devices.size(), 0);
    for (int part : split.layers) {
        n[size_t(part)]++;
    }
    return n;
}

std::string message(const std::string & text, const LayerSizes & sizes) {
    try {
        split_layers(text, known(), sizes);
    } catch (const Error & error) {
        return error.message();
    }
    return "";
}

} // namespace

TEST_CASE("layers by number, in the order given") {
    const LayerSplit split = split_layers("rpc0=2,CPU=3", known(), layers(5, 10));
    CHECK(split.name() == "RPC0+CPU");
    CHECK(split.layers == std::vector<int>{ 0, 0, 1, 1, 1 });
    CHECK(split.last() == 1);
    CHECK(split.is_split());
    const LayerSplit one = split_layers("GPU0=5", known(), layers(5, 10));
    CHECK(!one.is_split());
    CHECK(one.device_of(4) == 0);
}

TEST_CASE("layers by free memory") {
    CHECK(counts(split_layers("GPU0,RPC0", known(), layers(8, 100))) == std::vector<int>{ 2, 6 });
    CHECK(counts(split_layers("RPC0,GPU0", known(), layers(8, 100))) == std::vector<int>{ 6, 2 });
    // A head as heavy as four layers goes with the last of them.
    CHECK(counts(split_layers("GPU0,RPC0", known(), layers(16, 50, 200))) == std::vector<int>{ 2, 14 });
    // Every device named has at least one layer.
    CHECK(counts(split_layers("CPU,GPU0", known(), layers(3, 10))) == std::vector<int>{ 2, 1 });
    CHECK(counts(split_layers("GPU0,CPU", known(), layers(3, 10))) == std::vector<int>{ 1, 2 });
}

TEST_CASE("all devices: the CPU takes what the others have no room for") {
    const LayerSplit small = split_layers("memory", known(), layers(8, 100));
    CHECK(small.name() == "GPU0+RPC0");
    const LayerSplit large = split_layers("auto", known(), layers(8, 1000));
    CHECK(large.name() == "GPU0+RPC0+CPU");
    CHECK(counts(large)[2] >= 4);
    CHECK(counts(large)[0] * 1000 <= 1000);
    CHECK(counts(large)[1] * 1000 <= 3000);
}

TEST_CASE("what cannot be spread is said") {
    CHECK(message("CPU=1,RPC0=3", layers(5, 1)) == "--split CPU=1,RPC0=3: gives out 4 layers, the model has 5");
    CHECK(message("CPU=1,GPU7=3", layers(4, 1)) == "--split CPU=1,GPU7=3: 'GPU7' is no device");
    CHECK(message("CPU=1,RPC0", layers(4, 1)).find("some have none") != std::string::npos);
    CHECK(message("CPU=1,cpu=3", layers(4, 1)).find("CPU is named twice") != std::string::npos);
    CHECK(message("CPU=1x,RPC0=3", layers(4, 1)).find("is no number of layers") != std::string::npos);
    CHECK(message("CPU=99999999999999999999,RPC0=3", layers(4, 1)).find("is no number of layers") != std::string::npos);
    CHECK(message("CPU,GPU0,RPC0", layers(2, 1)).find("3 devices, but the model has 2 layers") != std::string::npos);
    CHECK(message("GPU0=3,CPU=1", layers(4, 600)).find("GPU0 has 1000 B free") != std::string::npos);
}
