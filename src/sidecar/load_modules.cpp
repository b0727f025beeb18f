#include "sidecar/load_modules.h"

#include "base/rng.h"
#include "base/shape.h"
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

int last_latent_layer(const SidecarConfig & config, int n_layer) {
    return config.interval_end > 0 ? int(config.interval_end) - 1 : n_layer - 1;
}

PenelopeModules assemble_modules(const ModuleNodes & nodes) {
    const auto rows   = [&](const std::string & name) { return nodes.at("penelope." + name); };
    const auto linear = [&](const std::string & name) {
        Linear layer;
        layer.weight = rows(name + ".weight");
        layer.bias   = rows(name + ".bias");
        return layer;
    };
    const auto norm = [&](const std::string & name) {
        return LayerNorm{ rows(name + ".weight"), rows(name + ".bias") };
    };
    const auto gru = [&](const std::string & name) { return Gru{ linear(name + ".input"), linear(name + ".hidden") }; };

    PenelopeModules m;
    m.memory_anchor  = rows("memory.anchor");
    m.memory_group   = rows("memory.group");
    m.memory_step    = rows("memory.step");
    m.readout_anchor = rows("readout.anchor");
    m.readout_step   = rows("readout.step");
    m.time_in        = linear("time.in");
    m.time_out       = linear("time.out");
    m.adapter_norm   = norm("adapter.norm");
    m.adapter_down   = linear("adapter.down");
    m.adapter_up     = linear("adapter.up");
    m.memory_gru     = gru("memory.gru");
    m.proj_norm      = norm("readout.proj.norm");
    m.proj           = linear("readout.proj");
    m.readout_gru    = gru("readout.gru");
    return m;
}

ModuleNodes load_modules(std::shared_ptr<const GgufReader> file, const SidecarConfig & config, int n_embd,
                         WeightStore & store) {
    ModuleNodes nodes;
    for (const TensorShape & shape : module_tensor_shapes(config, n_embd)) {
        const GgufTensor & tensor = file->get_tensor(shape.name, shape.ne);
        if (shape.is_matrix || tensor.type == GGML_TYPE_F32) {
            nodes[shape.name] = store.add(file, tensor, shape.is_matrix ? WeightUse::matrix : WeightUse::vector);
        } else {
            nodes[shape.name] = store.add_host(shape.name, shape.ne, read_f32(*file, tensor));
        }
    }
    return nodes;
}

ModuleNodes random_modules(const SidecarConfig & config, int n_embd, uint64_t seed, WeightStore & store) {
    Rng         rng(seed);
    ModuleNodes nodes;
    for (const TensorShape & shape : module_tensor_shapes(config, n_embd)) {
        const std::vector<int64_t> & ne = shape.ne;
        std::vector<float>           values(size_t(n_elements(ne)));
        for (float & value : values) {
            value = (rng.uniform_float() - 0.5f) * 0.04f;
        }
        // Matrices as a quantized sidecar has them.
        if (shape.is_matrix && ne[0] % ggml_blck_size(GGML_TYPE_Q8_0) == 0) {
            std::vector<uint8_t> blocks(ggml_row_size(GGML_TYPE_Q8_0, ne[0]) * size_t(ne[1]));
            ggml_quantize_chunk(GGML_TYPE_Q8_0, values.data(), blocks.data(), 0, ne[1], ne[0], nullptr);
            nodes[shape.name] = store.add_host(shape.name, GGML_TYPE_Q8_0, ne, std::move(blocks), WeightUse::matrix);
        } else {
            nodes[shape.name] = store.add_host(shape.name, ne, values);
        }
    }
    return nodes;
}

std::vector<TimeStep> make_time_tables(const PenelopeModules & modules, const LatentShape & shape,
                                       const DeviceInfo & device, WeightStore & store) {
    Backend backend(device, 1);
    Graph   g;
    Node    coordinates = g.input("coordinates", GGML_TYPE_F32, 2, shape.k_max);

    std::vector<TimeStep> steps = time_network(g, modules, shape, coordinates);
    const auto            nodes = [](TimeStep & step) {
        return std::vector<Node *>{ &step.memory_offset, &step.readout_step, &step.gain, &step.shift,
                                    &step.update_rate };
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
