#include "method/thoughts.h"

#include "method/batch_layout.h"
#include "method/decode.h"
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

std::vector<Node> thought_passes(Graph & g, const Backbone & model, const ThoughtModules & modules, Node prompt,
                                 int n_sequences, const RowLayout & first, const OutputRows & first_output,
                                 const std::vector<RowLayout> & thought_rows, SequenceState & kv) {
    const int         n_layer = model.config.n_layer;
    const size_t      n_steps = thought_rows.size();
    const OutputRows  none{}; // nothing is read from the row that comes last
    Node              start = slice_rows(g, modules.token_rows, 0, 1);
    Node              x     = concat_rows(g, { prompt, repeat_rows(g, start, n_sequences) });
    Node              state = run_layers(g, model, 0, n_layer, x, first, kv, n_steps ? &first_output : &none);
    std::vector<Node> thoughts;
    for (size_t t = 1; t <= n_steps; t++) {
        Node thought = g.named(next_thought(g, model, modules, state), "thought.%d", int(t));
        thoughts.push_back(thought);
        g.add_abort_point(thought);
        state = run_layers(g, model, 0, n_layer, thought, thought_rows[t - 1], kv, t == n_steps ? &none : nullptr);
    }
    return thoughts;
}

struct ThoughtMethod::Built : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                                    ids        = nullptr; // of the prompts
    Node                                    prefix_ids = nullptr; // null without a prefix
    std::unique_ptr<RowInputs>              first;                // prompts, then a start row each
    std::vector<std::unique_ptr<RowInputs>> thoughts;
    std::unique_ptr<RowInputs>              end, last; // end rows with their prefix, and the last row of each
    Node                                    last_index = nullptr;
    std::vector<Node>                       thought_nodes;
    Node                                    logits = nullptr;
};

ThoughtMethod::Built & ThoughtMethod::run(Context & context, const std::vector<Prompt> & prompts, int n_steps,
                                          const Tokens & prefix, int & applications) const {
    const int                          n      = int(prompts.size());
    const int                          n_end  = 1 + int(prefix.size());
    const std::vector<int>             n_done = prefill_leading_chunks(context, prompts, applications);
    std::vector<SeqRange>              first, starts, end, last;
    std::vector<std::vector<SeqRange>> thoughts{ size_t(n_steps) };
    std::vector<int32_t>               ids, prefix_ids, last_index;
    for (int i = 0; i < n; i++) {
        const Tokens & tokens = prompts[size_t(i)].tokens;
        const int      stream = prompts[size_t(i)].stream;
        const int      n_all  = int(tokens.size());
        first.push_back(prompt_range(context, { tokens, stream, n_done[size_t(i)] }, n_all));
        starts.push_back({ stream, n_all, 1 });
        first.back().to = starts.back().from =
            StateSlot::prompt_end; // the end of the prompt, for a later prompt to go on from
        for (int t = 1; t <= n_steps; t++) {
            thoughts[size_t(t - 1)].push_back({ stream, n_all + t, 1 });
        }
        end.push_back({ stream, n_all + n_steps + 1, n_end });
        last.push_back({ stream, n_all + n_steps + n_end, 1 });
        last_index.push_back((i + 1) * n_end - 1);
        ids.insert(ids.end(), tokens.begin() + n_done[size_t(i)], tokens.end());
        prefix_ids.insert(prefix_ids.end(), prefix.begin(), prefix.end());
    }
    const std::string key = shape_key(name_ + std::to_string(n_steps) + "+" + std::to_string(n_end), first);
    first.insert(first.end(), starts.begin(), starts.end());

    Built & built = context.graph<Built>(key, streams_of(starts), [&]() {
        const Backbone & model   = context.model();
        const int        n_layer = model.config.n_layer;
        auto             fresh   = std::make_unique<Built>(context, n);
        Graph &          g       = fresh->graph;
        fresh->ids               = g.input("ids", GGML_TYPE_I32, int64_t(ids.size()));
        fresh->first             = std::make_unique<RowInputs>(g, "first", first, true);
        std::vector<RowLayout> thought_rows;
        for (const auto & ranges : thoughts) {
            fresh->thoughts.push_back(std::make_unique<RowInputs>(g, "thought", ranges, true));
            thought_rows.push_back(fresh->thoughts.back()->rows());
        }
        fresh->end = std::make_unique<RowInputs>(g, "end", end, true);

        const RowLayout start_rows = fresh->first->subset(g, n, n);
        OutputRows      output_rows;
        output_rows.first     = int(ids.size());
        output_rows.count     = n;
        output_rows.positions = start_rows.positions;
        output_rows.segments  = start_rows.segments;
        fresh->thought_nodes  = thought_passes(g, model, modules_, embed(g, model.embedding, fresh->ids), n,
                                               fresh->first->rows(), output_rows, thought_rows, context.cache());

        Node              end_row = slice_rows(g, modules_.token_rows, 1, 1);
        std::vector<Node> rows;
        OutputRows        answering;
        if (prefix.empty()) {
            rows.push_back(repeat_rows(g, end_row, n));
        } else {
            fresh->prefix_ids = g.input("prefix", GGML_TYPE_I32, int64_t(prefix_ids.size()));
            Node words        = embed(g, model.embedding, fresh->prefix_ids);
            for (int i = 0; i < n; i++) {
                rows.push_back(end_row);
                rows.push_back(slice_rows(g, words, i * int64_t(prefix.size()), int64_t(prefix.size())));
            }
            fresh->last     = std::make_unique<RowInputs>(g, "last", last, true);
            answering.index = fresh->last_index = g.input("last.index", GGML_TYPE_I32, n);
            answering.positions                 = fresh->last->rows().positions;
            answering.segments                  = fresh->last->rows().segments;
        }
        Node out      = run_layers(g, model, 0, n_layer, concat_rows(g, rows), fresh->end->rows(), context.cache(),
                              prefix.empty() ? nullptr : &answering);
        fresh->logits = logits(g, model, out);
        for (Node thought : fresh->thought_nodes) {
            g.output(thought);
        }
        g.output(fresh->logits);
        return fresh;
    });
    context.prepare(built);
    built.graph.set(built.ids, ids);
    built.first->fill(first, &context.cache());
    for (size_t t = 0; t < thoughts.size(); t++) {
        built.thoughts[t]->fill(thoughts[t], &context.cache());
    }
    built.end->fill(end, &context.cache());
    if (built.prefix_ids) {
        built.graph.set(built.prefix_ids, prefix_ids);
        built.last->fill(last, &context.cache());
        built.graph.set(built.last_index, last_index);
    }
    context.compute(built);
    context.count_token_rows(ids.size());
    applications += built.graph.n_layer_applications();
    return built;
}

Prefill ThoughtMethod::prefill(Context & context, const std::vector<Prompt> & prompts, int n_steps) const {
    Prefill prefilled;
    Built & built    = run(context, prompts, n_steps, prefix_, prefilled.layer_applications);
    prefilled.logits = get_rows(built.logits);
    for (const Prompt & prompt : prompts) {
        prefilled.n_past.push_back(int(prompt.tokens.size()) + n_extra_rows(n_steps));
    }
    return prefilled;
}

LatentSteps * ThoughtMethod::steps(Context & context) const {
    return &context.extension<ThoughtSteps>(this, [&]() { return std::make_unique<ThoughtSteps>(*this, context); });
}

std::vector<StateTensor> ThoughtMethod::states(Context & context, const Prompt & prompt, int n_steps) const {
    int                      applications = 0;
    Built &                  built        = run(context, { prompt }, n_steps, {}, applications);
    std::vector<StateTensor> states;
    for (size_t t = 0; t < built.thought_nodes.size(); t++) {
        states.push_back({ "thought_" + std::to_string(t + 1),
                           { built.thought_nodes[t]->ne[0] },
                           get_node(built.thought_nodes[t]) });
    }
    states.push_back({ "first_logits", { built.logits->ne[0] }, get_node(built.logits) });
    return states;
}

} // namespace penelope
