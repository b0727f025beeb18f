#include "method/thoughts.h"

#include "method/thought_steps.h"

namespace penelope {

ThoughtModules coconut_modules(const ModuleNodes & nodes) {
    return { nodes.at("coconut.token.rows"), {} };
}

ThoughtModules codi_modules(const ModuleNodes & nodes) {
    ThoughtProjection projection;
    projection.in.weight  = nodes.at("codi.proj.in.weight");
    projection.in.bias    = nodes.at("codi.proj.in.bias");
    projection.out.weight = nodes.at("codi.proj.out.weight");
    projection.out.bias   = nodes.at("codi.proj.out.bias");
    projection.norm       = { nodes.at("codi.proj.norm.weight"), nodes.at("codi.proj.norm.bias") };
    return { nodes.at("codi.token.rows"), projection };
}

Node next_thought(Graph & g, const Backbone & model, const ThoughtModules & modules, Node state) {
    Node thought = final_norm(g, model, state);
    if (!modules.projection) {
        return thought;
    }
    const ThoughtProjection & p = *modules.projection;
    return layer_norm(g, linear(g, p.out, gelu(g, linear(g, p.in, thought))), p.norm.weight, p.norm.bias);
}

Node start_pass(Graph & g, const Backbone & model, const ThoughtModules & modules, Node prompt, int n_sequences,
                const RowLayout & rows, const OutputRows & start_rows, SequenceState & kv, bool need_thought) {
    const OutputRows none{};
    Node             start = repeat_rows(g, slice_rows(g, modules.token_rows, 0, 1), n_sequences);
    Node             state = run_layers(g, model, 0, model.config.n_layer, concat_rows(g, { prompt, start }), rows, kv,
                            need_thought ? &start_rows : &none);
    return need_thought ? next_thought(g, model, modules, state) : nullptr;
}

std::vector<Node> thought_passes(Graph & g, const Backbone & model, const ThoughtModules & modules, Node thought,
                                 const std::vector<RowLayout> & rows, SequenceState & kv, bool need_next) {
    const OutputRows  none{}; // nothing is read from the row that comes last
    std::vector<Node> thoughts;
    for (size_t t = 1; t <= rows.size(); t++) {
        g.named(thought, "thought.%d", int(t));
        thoughts.push_back(thought);
        g.add_abort_point(thought);
        const bool is_last = t == rows.size() && !need_next;
        Node state = run_layers(g, model, 0, model.config.n_layer, thought, rows[t - 1], kv, is_last ? &none : nullptr);
        thought    = is_last ? nullptr : next_thought(g, model, modules, state);
    }
    if (need_next) {
        thoughts.push_back(thought);
    }
    return thoughts;
}

LatentSteps * ThoughtMethod::steps(Context & context) const {
    return &context.extension<ThoughtSteps>(this, [&]() { return std::make_unique<ThoughtSteps>(*this, context); });
}

} // namespace penelope
