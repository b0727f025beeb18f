#include "latent/load_modules.h"

#include "base/rng.h"
#include "model/lora.h"

namespace penelope {

LatentShape latent_shape(const SidecarConfig & config) {
    LatentShape shape;
    shape.start      = int(config.interval_start);
    shape.end        = int(config.interval_end);
    shape.n_memory   = int(config.n_memory);
    shape.n_readout  = int(config.n_readout);
    shape.k_max      = int(config.k_max);
    shape.transition = config.transition == "overwrite" ? Transition::overwrite : Transition::gru;
    return shape;
}

PenelopeModules assemble_modules(const SidecarConfig & c, int64_t d, const ModuleSource & get) {
    const auto rows   = [&](const std::string & name, int64_t n) { return get("penelope." + name, { d, n }, false); };
    const auto linear = [&](const std::string & name, int64_t n_in, int64_t n_out, bool is_matrix) {
        Linear layer;
        layer.weight = get("penelope." + name + ".weight", { n_in, n_out }, is_matrix);
        layer.bias   = get("penelope." + name + ".bias", { n_out }, false);
        return layer;
    };
    const auto norm = [&](const std::string & name) {
        return LayerNorm{ get("penelope." + name + ".weight", { d }, false),
                          get("penelope." + name + ".bias", { d }, false) };
    };
    const auto gru = [&](const std::string & name) {
        return Gru{ linear(name + ".input", d, 3 * d, true), linear(name + ".hidden", d, 3 * d, true) };
    };

    PenelopeModules m;
    m.memory_anchor  = rows("memory.anchor", c.n_memory);
    m.memory_group   = rows("memory.group", c.n_memory);
    m.memory_step    = rows("memory.step", c.k_max);
    m.readout_anchor = rows("readout.anchor", c.n_readout);
    m.readout_step   = rows("readout.step", c.k_max);
    m.time_in        = linear("time.in", 2, c.time_length, false);
    m.time_out       = linear("time.out", c.time_length, 2 * d + 1, false);
    m.adapter_norm   = norm("adapter.norm");
    m.adapter_down   = linear("adapter.down", d, c.adapter_length, true);
    m.adapter_up     = linear("adapter.up", c.adapter_length, d, true);
    m.memory_gru     = gru("memory.gru");
    m.proj_norm      = norm("readout.proj.norm");
    m.proj           = linear("readout.proj", d, int64_t(c.n_readout) * d, true);
    m.readout_gru    = gru("readout.gru");
    return m;
}

PenelopeModules load_modules(std::shared_ptr<const GgufReader> file, const SidecarConfig & config, int n_embd,
                             WeightStore & store) {
    return assemble_modules(config, n_embd,
                            [&](const std::string & name, const std::vector<int64_t> & ne, bool is_matrix) {
                                const GgufTensor & tensor = file->get_tensor(name, ne);
                                if (is_matrix) {
                                    return store.add(file, tensor, WeightUse::matrix);
                                }
                                return tensor.type == GGML_TYPE_F32 ? store.add(file, tensor, WeightUse::vector)
                                                                    : store.add_host(name, ne, read_f32(*file, tensor));
                            });
}

PenelopeModules random_modules(const SidecarConfig & config, int n_embd, uint64_t seed, WeightStore & store) {
    Rng rng(seed);
    return assemble_modules(
        config, n_embd, [&](const std::string & name, const std::vector<int64_t> & ne, bool is_matrix) {
            size_t n = 1;
            for (int64_t extent : ne) {
                n *= size_t(extent);
            }
            std::vector<float> values(n);
            for (float & value : values) {
                value = (rng.uniform_float() - 0.5f) * 0.04f;
            }
            // Matrices as a quantized sidecar has them.
            if (is_matrix && ne[0] % ggml_blck_size(GGML_TYPE_Q8_0) == 0) {
                std::vector<uint8_t> blocks(ggml_row_size(GGML_TYPE_Q8_0, ne[0]) * size_t(ne[1]));
                ggml_quantize_chunk(GGML_TYPE_Q8_0, values.data(), blocks.data(), 0, ne[1], ne[0], nullptr);
                return store.add_host(name, GGML_TYPE_Q8_0, ne, std::move(blocks), WeightUse::matrix);
            }
            return store.add_host(name, ne, values);
        });
}

std::vector<TimeStep> make_time_tables(const PenelopeModules & modules, const LatentShape & shape,
                                       const DeviceInfo & device, WeightStore & store) {
    Backend backend(device, 1);
    Graph   g(256 + 32 * shape.k_max);
    Node    coordinates = g.input("coordinates", GGML_TYPE_F32, 2, shape.k_max);

    std::vector<TimeStep> steps = time_network(g, modules, shape, coordinates);
    const auto            nodes = [](TimeStep & step) {
        return std::vector<Node *>{ &step.memory_offset, &step.readout_step, &step.gain, &step.shift, &step.pull };
    };
    for (TimeStep & step : steps) {
        for (Node * node : nodes(step)) {
            *node = ggml_cont(g.ctx(), *node);
            g.output(*node);
        }
    }
    g.allocate(backend);
    set_node(coordinates, time_coordinates(shape, shape.k_max));
    g.compute(backend);
    for (size_t t = 0; t < steps.size(); t++) {
        for (Node * node : nodes(steps[t])) {
            *node = store.add_host("time." + std::to_string(t + 1), { (*node)->ne[0] }, get_node(*node));
        }
    }
    store.load();
    return steps;
}

} // namespace penelope
