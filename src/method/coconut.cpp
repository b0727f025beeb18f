#include "method/coconut.h"

#include "method/placement.h"

namespace penelope {

CoconutPasses coconut_passes(Graph & g, const Backbone & model, Node prompt, Node start_row, int n_sequences,
                             const Rows & first, const Queries & first_kept, const std::vector<Rows> & thought_rows,
                             SequenceState & kv) {
    const int     n_layer = model.config.n_layer;
    const size_t  n_steps = thought_rows.size();
    const Queries none{}; // nothing is read from the row that comes last
    Node          x     = concat_rows(g, { prompt, repeat_rows(g, start_row, n_sequences) });
    Node          state = run_layers(g, model, 0, n_layer, x, first, kv, n_steps ? &first_kept : &none);
    CoconutPasses passes;
    for (size_t t = 1; t <= n_steps; t++) {
        Node thought = g.named(final_norm(g, model, state), "coconut.thought.%d", int(t));
        passes.thoughts.push_back(thought);
        state = run_layers(g, model, 0, n_layer, thought, thought_rows[t - 1], kv, t == n_steps ? &none : nullptr);
    }
    return passes;
}

struct CoconutMethod::Built : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                                    ids = nullptr;
    std::unique_ptr<RowInputs>              first; // prompts, then a start row each
    std::vector<std::unique_ptr<RowInputs>> thoughts;
    std::unique_ptr<RowInputs>              end;
    CoconutPasses                           passes;
    Node                                    logits = nullptr;
};

CoconutMethod::Built & CoconutMethod::run(Context & context, const std::vector<Prompt> & prompts, int n_steps,
                                          int & applications) const {
    const int                         n      = int(prompts.size());
    const std::vector<int>            n_done = send_ahead(context, prompts, applications);
    std::vector<Stretch>              first, starts, end;
    std::vector<std::vector<Stretch>> thoughts{ size_t(n_steps) };
    std::vector<int32_t>              ids;
    std::string                       key = "coconut" + std::to_string(n_steps);
    for (int i = 0; i < n; i++) {
        const Tokens & tokens = prompts[size_t(i)].tokens;
        const int      stream = prompts[size_t(i)].stream;
        const int      n_all  = int(tokens.size());
        first.push_back(stretch(stream, n_done[size_t(i)], n_all - n_done[size_t(i)]));
        starts.push_back(stretch(stream, n_all, 1));
        first.back().to = starts.back().from = Hold::anchor; // the end of the prompt, for a later prompt to go on from
        for (int t = 1; t <= n_steps; t++) {
            thoughts[size_t(t - 1)].push_back(stretch(stream, n_all + t, 1));
        }
        end.push_back(stretch(stream, n_all + n_steps + 1, 1));
        ids.insert(ids.end(), tokens.begin() + n_done[size_t(i)], tokens.end());
        key += ":" + std::to_string(stream) + "," + std::to_string(first.back().count) + "," +
               std::to_string(first.back().n_kv);
    }
    first.insert(first.end(), starts.begin(), starts.end());

    Built & built = context.graph<Built>(key, [&]() {
        const Backbone & model   = context.model();
        const int        n_layer = model.config.n_layer;
        auto    fresh = std::make_unique<Built>(node_budget((n_steps + 2) * n_layer, 2 * n, 64 * (n_steps + 2)));
        Graph & g     = fresh->graph;
        fresh->ids    = g.input("ids", GGML_TYPE_I32, int64_t(ids.size()));
        fresh->first  = std::make_unique<RowInputs>(g, "first", first, true);
        std::vector<Rows> thought_rows;
        for (const auto & stretches : thoughts) {
            fresh->thoughts.push_back(std::make_unique<RowInputs>(g, "thought", stretches, true));
            thought_rows.push_back(fresh->thoughts.back()->rows());
        }
        fresh->end = std::make_unique<RowInputs>(g, "end", end, true);

        const Rows start_rows = fresh->first->part(g, n, n);
        Queries    kept;
        kept.first     = int(ids.size());
        kept.count     = n;
        kept.positions = start_rows.positions;
        kept.segments  = start_rows.segments;
        fresh->passes =
            coconut_passes(g, model, embed(g, model.embedding, fresh->ids), slice_rows(g, token_rows_, 0, 1), n,
                           fresh->first->rows(), kept, thought_rows, context.cache());
        Node ends     = repeat_rows(g, slice_rows(g, token_rows_, 1, 1), n);
        fresh->logits = logits(g, model, run_layers(g, model, 0, n_layer, ends, fresh->end->rows(), context.cache()));
        for (Node thought : fresh->passes.thoughts) {
            g.output(thought);
        }
        g.output(fresh->logits);
        return fresh;
    });
    context.prepare(built);
    set_node(built.ids, ids);
    built.first->fill(first, &context.cache());
    for (size_t t = 0; t < thoughts.size(); t++) {
        built.thoughts[t]->fill(thoughts[t], &context.cache());
    }
    built.end->fill(end, &context.cache());
    context.compute(built);
    context.count_token_rows(ids.size());
    applications += built.graph.n_layer_applications();
    return built;
}

Filled CoconutMethod::fill(Context & context, const std::vector<Prompt> & prompts, int n_steps) const {
    Filled  filled;
    Built & built = run(context, prompts, n_steps, filled.layer_applications);
    filled.logits = get_rows(built.logits);
    for (const Prompt & prompt : prompts) {
        filled.n_rows.push_back(int(prompt.tokens.size()) + n_extra_rows(n_steps));
    }
    return filled;
}

std::vector<StateTensor> CoconutMethod::states(Context & context, const Prompt & prompt, int n_steps) const {
    int                      applications = 0;
    Built &                  built        = run(context, { prompt }, n_steps, applications);
    std::vector<StateTensor> states;
    for (size_t t = 0; t < built.passes.thoughts.size(); t++) {
        states.push_back({ "thought_" + std::to_string(t + 1),
                           { built.passes.thoughts[t]->ne[0] },
                           get_node(built.passes.thoughts[t]) });
    }
    states.push_back({ "first_logits", { built.logits->ne[0] }, get_node(built.logits) });
    return states;
}

} // namespace penelope
