// Several K for the same questions: boundary, prompt cache and refinements once, then a final pass for each K.
#include "method/penelope.h"
#include "method/placement.h"

namespace penelope {

namespace {

// Everything up to the last refinement; the interface of every step is read back.
struct SharedGraph : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                       ids = nullptr;
    std::unique_ptr<RowInputs> all, memory;
    std::vector<Node>          interfaces;   // [M_t; R_t], t = 0 .. K
    std::vector<int>           applications; // up to and with step t
};

// The interface rows of one K through [s:L), over a cache that holds the prompt in every layer.
struct FinalGraph : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                       inter = nullptr; // [d, (m + q) * n]
    std::unique_ptr<RowInputs> rows, last;
    Node                       index  = nullptr;
    Node                       logits = nullptr;
};

int budget(const Context & context, const LatentShape & shape, int n_steps, int n_sequences) {
    const int applications = context.model().config.n_layer + (n_steps + 2) * (shape.end - shape.start);
    return node_budget(applications, 2 * n_sequences, 128 * (n_steps + 1));
}

std::unique_ptr<SharedGraph> build_shared(Context & context, const PenelopeModules & modules, const LatentShape & shape,
                                          const std::vector<TimeStep> & steps, int n_steps, const Placement & p,
                                          bool exact) {
    const Backbone & model = context.model();
    const int        n     = int(p.prompts.size());
    auto             built = std::make_unique<SharedGraph>(budget(context, shape, n_steps, n));
    Graph &          g     = built->graph;
    built->ids             = g.input("ids", GGML_TYPE_I32, int64_t(p.ids.size()));
    built->all             = std::make_unique<RowInputs>(g, "rows", p.all(), exact);
    built->memory          = std::make_unique<RowInputs>(g, "memory", p.memory, exact);

    const Boundary start       = boundary(g, model, modules, shape, embed(g, model.embedding, built->ids), nullptr, n,
                                          built->all->rows(), context.cache());
    const Rows     prompt_rows = built->all->part(g, 0, n);
    Node           above       = prompt_cache(g, model, shape, start.prompt, prompt_rows, context.cache());

    Trajectory trajectory{};
    trajectory.memory  = { start.memory };
    trajectory.readout = { start.readout };
    for (int t = 0; t <= n_steps; t++) {
        if (t > 0) {
            refine_once(g, model, modules, shape, steps[size_t(t - 1)], built->memory->rows(), context.cache(),
                        trajectory);
        }
        built->interfaces.push_back(join_interface(g, shape, trajectory.memory.back(), trajectory.readout.back()));
        built->applications.push_back(g.n_layer_marks());
        g.output(built->interfaces.back());
    }
    if (above) {
        // A single run sends the prompt through [e:L) together with the interface: side by side, so not one step longer.
        const Queries none{};
        run_layers(g, model, shape.end, model.config.n_layer, above, prompt_rows, context.cache(), &none);
    }
    return built;
}

std::unique_ptr<FinalGraph> build_final(Context & context, const LatentShape & shape, const Placement & p, bool exact) {
    const Backbone & model = context.model();
    const int        n     = int(p.prompts.size());
    auto             built = std::make_unique<FinalGraph>(node_budget(model.config.n_layer, n, 64));
    Graph &          g     = built->graph;
    built->inter           = g.input("interface", GGML_TYPE_F32, model.config.n_embd, int64_t(n) * shape.n_interface());
    built->rows            = std::make_unique<RowInputs>(g, "rows", p.interfaces, exact);
    built->last            = std::make_unique<RowInputs>(g, "last", p.last, exact);
    built->index           = g.input("last.index", GGML_TYPE_I32, n);
    Queries kept;
    kept.index     = built->index;
    kept.positions = built->last->rows().positions;
    kept.segments  = built->last->rows().segments;
    Node out       = run_layers(g, model, shape.start, model.config.n_layer, built->inter, built->rows->rows(),
                                context.cache(), &kept);
    built->logits  = logits(g, model, out);
    g.output(built->logits);
    return built;
}

} // namespace

void PenelopeMethod::sweep(Context & context, const std::vector<Tokens> & prompts, const std::vector<int> & steps,
                           const std::function<void(int, const Filled &)> & answer) const {
    int                       ahead   = 0;
    const std::vector<Prompt> fresh   = fresh_prompts(prompts);
    const std::vector<int>    n_done  = send_ahead(context, fresh, ahead);
    const int                 bucket  = context.options().bucket;
    const Placement           p       = place(fresh, n_done, shape_, bucket);
    const int                 n_steps = steps.empty() ? 0 : steps.back();

    SharedGraph & shared = context.graph<SharedGraph>(p.key("penelope-shared", n_steps), [&]() {
        return build_shared(context, modules_, shape_, steps_, n_steps, p, bucket == 1);
    });
    context.prepare(shared);
    set_node(shared.ids, p.ids);
    shared.all->fill(p.all(), &context.cache());
    shared.memory->fill(p.memory, &context.cache());
    context.compute(shared);
    context.count_token_rows(p.ids.size());

    // Read before the next graph takes the workspace.
    std::vector<std::vector<float>> interfaces;
    for (Node node : shared.interfaces) {
        interfaces.push_back(get_node(node));
    }
    const std::vector<int> applications = shared.applications;

    // Layers below the interval stand after the interface already; decoding an answer moves them on.
    const std::vector<int> n_rows = rows_after(fresh, shape_);
    for (size_t i = 0; i < prompts.size(); i++) {
        context.cache().restore(int(i), 0);
        context.cache().keep(int(i), n_rows[i], Hold::tip);
    }
    for (int k : steps) {
        for (size_t i = 0; i < prompts.size(); i++) {
            context.cache().restore(int(i), n_rows[i]);
        }
        FinalGraph & built = context.graph<FinalGraph>(p.key("penelope-final", 0),
                                                       [&]() { return build_final(context, shape_, p, bucket == 1); });
        context.prepare(built);
        set_node(built.inter, interfaces[size_t(k)]);
        built.rows->fill(p.interfaces, &context.cache());
        built.last->fill(p.last, &context.cache());
        set_node(built.index, last_index(0, int(prompts.size()), shape_));
        context.compute(built);

        Filled filled;
        filled.logits             = get_rows(built.logits);
        filled.n_rows             = n_rows;
        filled.layer_applications = ahead + applications[size_t(k)] + built.graph.n_layer_applications();
        answer(k, filled);
    }
}

} // namespace penelope
