#include "method/thought_steps.h"

#include "method/batch_layout.h"
#include "method/decode.h"

namespace penelope {

// The rows of a pass. Lists have one range per sequence, and are empty where the pass does not have the part.
struct ThoughtSteps::Rows {
    std::vector<int>                   streams;
    std::vector<SeqRange>              first;     // prompts, then a start row each
    std::vector<std::vector<SeqRange>> thoughts;  // one list per step
    std::vector<SeqRange>              end, last; // end row and prefix, and the last of them
    std::vector<int32_t>               ids;       // of the prompts
    std::vector<int32_t>               prefix_ids;
    bool                               exact = false; // of RowInputs
};

// Inputs that a graph does not have are null.
struct ThoughtSteps::Built : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                                    ids = nullptr, prefix_ids = nullptr;
    Node                                    from = nullptr, to = nullptr; // the streams whose thought is read, written
    std::unique_ptr<RowInputs>              first, end, last;
    std::vector<std::unique_ptr<RowInputs>> thoughts;
    Node                                    last_index = nullptr;
    std::vector<Node>                       thought_nodes;
    Node                                    logits = nullptr;
};

ThoughtSteps::ThoughtSteps(const ThoughtMethod & method, Context & context)
    : LatentSteps(method, context), method_(method), store_(context.latent_device(), false) {
    next_ = store_.add_empty("steps.thought", GGML_TYPE_F32,
                             { context.model().config.n_embd, int64_t(context.options().n_streams) });
    store_.load();
}

ThoughtSteps::Rows ThoughtSteps::rows_of(const Pass & pass, const Tokens & prefix, int & applications) {
    Rows      rows;
    const int n_end = 1 + int(prefix.size());
    rows.streams    = pass.streams;
    rows.exact      = !pass.prompts.empty();
    // Rows [first, first + count) after the thoughts of each stream so far.
    const auto after_thoughts = [&](int first, int count) {
        std::vector<SeqRange> ranges = rounded_ranges(
            pass.streams, [&](int stream) { return at(stream).n_prompt + 1 + at(stream).t + first; }, count);
        for (SeqRange & range : ranges) {
            range.n_kv = rows.exact ? range.row + count : range.n_kv;
        }
        return ranges;
    };
    for (int i = 0; i < pass.n_steps; i++) {
        rows.thoughts.push_back(after_thoughts(i, 1));
    }
    if (pass.finish) {
        rows.end  = after_thoughts(pass.n_steps, n_end);
        rows.last = after_thoughts(pass.n_steps + n_end - 1, 1);
        for (size_t i = 0; i < pass.streams.size(); i++) {
            rows.prefix_ids.insert(rows.prefix_ids.end(), prefix.begin(), prefix.end());
        }
    }
    const std::vector<int> n_done = prefill_leading_chunks(context_, pass.prompts, applications);
    std::vector<SeqRange>  starts;
    for (size_t i = 0; i < pass.prompts.size(); i++) {
        const Tokens & tokens = pass.prompts[i].tokens;
        const int      stream = pass.prompts[i].stream;
        const int      n_all  = int(tokens.size());
        rows.first.push_back(prompt_range(context_, { tokens, stream, n_done[i] }, n_all));
        starts.push_back({ stream, n_all, 1 });
        // A later prompt may go on from the end of this one.
        rows.first.back().to = starts.back().from = StateSlot::prompt_end;
        rows.ids.insert(rows.ids.end(), tokens.begin() + n_done[i], tokens.end());
    }
    rows.first.insert(rows.first.end(), starts.begin(), starts.end());
    return rows;
}

// Prompts and start rows; returns the first thought of each sequence if it is needed, else null.
Node ThoughtSteps::build_start(Built & built, const Rows & rows, bool need_thought) {
    Graph &   g = built.graph;
    const int n = int(rows.streams.size());
    built.ids   = g.input("ids", GGML_TYPE_I32, int64_t(rows.ids.size()));
    built.first = std::make_unique<RowInputs>(g, "first", context_.model().config, rows.first, rows.exact);
    const RowLayout start_rows = built.first->subset(g, n, n);
    OutputRows      output;
    output.first     = int(rows.ids.size());
    output.count     = n;
    output.positions = start_rows.positions;
    output.segments  = start_rows.segments;
    return start_pass(g, context_.model(), method_.modules(), embed_tokens(g, context_.model(), built.ids), n,
                      built.first->rows(), output, context_.cache(), need_thought);
}

// The end row and the prefix of each sequence, and the logits after them.
void ThoughtSteps::build_end(Built & built, const Rows & rows) {
    const Backbone & model     = context_.model();
    const int        n         = int(rows.streams.size());
    const int        n_prefix  = rows.end.front().count - 1;
    const int        n_batched = rows.exact ? 0 : context_.n_batched_streams();
    Graph &          g         = built.graph;
    built.end      = std::make_unique<RowInputs>(g, "end", context_.model().config, rows.end, rows.exact, n_batched);
    Node       end = slice_rows(g, method_.modules().token_rows, 1, 1);
    Node       x   = nullptr;
    OutputRows output;
    if (n_prefix == 0) {
        x = repeat_rows(g, end, n);
    } else {
        built.prefix_ids = g.input("prefix", GGML_TYPE_I32, int64_t(n) * n_prefix);
        built.last = std::make_unique<RowInputs>(g, "last", context_.model().config, rows.last, rows.exact, n_batched);
        built.last_index        = g.input("last.index", GGML_TYPE_I32, n);
        output.index            = built.last_index;
        output.positions        = built.last->rows().positions;
        output.segments         = built.last->rows().segments;
        output.batched          = built.last->rows().batched;
        Node              words = embed_tokens(g, model, built.prefix_ids);
        std::vector<Node> parts;
        for (int i = 0; i < n; i++) {
            parts.push_back(end);
            parts.push_back(slice_rows(g, words, int64_t(i) * n_prefix, n_prefix));
        }
        x = concat_rows(g, parts);
    }
    Node out     = run_layers(g, model, 0, model.config.n_layer, x, built.end->rows(), context_.cache(),
                          n_prefix == 0 ? nullptr : &output);
    built.logits = logits(g, model, out);
    g.output(built.logits);
}

ThoughtSteps::Built & ThoughtSteps::graph(const Rows & rows) {
    const bool has_prompts = !rows.first.empty(), finish = !rows.end.empty();
    const int  n_steps = int(rows.thoughts.size());
    // Prompts and K give the shape of all that follows them.
    const std::string kind = method_.name() + (has_prompts ? "-start" : "") + std::to_string(n_steps) +
                             (finish ? "-end" + std::to_string(rows.end.front().count) : "");
    const std::string key = shape_key(kind, has_prompts ? rows.first : finish ? rows.end : rows.thoughts.front());
    return context_.graph<Built>(key, rows.streams, [&]() {
        const int n       = int(rows.streams.size());
        auto      built   = std::make_unique<Built>(context_, n);
        Graph &   g       = built->graph;
        Node      thought = nullptr;
        if (has_prompts) {
            thought = build_start(*built, rows, n_steps > 0 || !finish);
        } else if (n_steps > 0) {
            built->from = g.input("from", GGML_TYPE_I32, n);
            thought     = ggml_get_rows(g.ctx(), next_, built->from);
        }
        std::vector<RowLayout> thought_rows;
        for (const std::vector<SeqRange> & ranges : rows.thoughts) {
            built->thoughts.push_back(std::make_unique<RowInputs>(g, "thought", context_.model().config, ranges,
                                                                  rows.exact,
                                                                  rows.exact ? 0 : context_.n_batched_streams()));
            thought_rows.push_back(built->thoughts.back()->rows());
        }
        built->thought_nodes =
            thought_passes(g, context_.model(), method_.modules(), thought, thought_rows, context_.cache(), !finish);
        if (finish) {
            build_end(*built, rows);
            for (Node node : built->thought_nodes) {
                g.output(node);
            }
        } else {
            built->to = g.input("to", GGML_TYPE_I64, n);
            g.expand(ggml_set_rows(g.ctx(), next_, built->thought_nodes.back(), built->to));
        }
        return built;
    });
}

// Sets the inputs the graph of this pass has and computes it.
ThoughtSteps::Built & ThoughtSteps::compute(const Pass & pass, const Tokens & prefix, int & applications) {
    const Rows            rows  = rows_of(pass, prefix, applications);
    const SequenceCache & cache = context_.cache();
    Built &               built = graph(rows);
    Graph &               g     = built.graph;
    context_.prepare(built);
    if (built.ids) {
        g.set(built.ids, rows.ids);
        built.first->fill(rows.first, &cache);
    }
    if (built.from) {
        g.set(built.from, std::vector<int32_t>(rows.streams.begin(), rows.streams.end()));
    }
    if (built.to) {
        g.set(built.to, std::vector<int64_t>(rows.streams.begin(), rows.streams.end()));
    }
    for (size_t t = 0; t < rows.thoughts.size(); t++) {
        built.thoughts[t]->fill(rows.thoughts[t], &cache);
    }
    if (built.end) {
        built.end->fill(rows.end, &cache);
    }
    if (built.prefix_ids) {
        std::vector<int32_t> index;
        for (size_t i = 1; i <= rows.streams.size(); i++) {
            index.push_back(int32_t(i) * rows.end.front().count - 1);
        }
        g.set(built.prefix_ids, rows.prefix_ids);
        g.set(built.last_index, index);
        built.last->fill(rows.last, &cache);
    }
    context_.compute(built);
    context_.count_token_rows(rows.ids.size());
    applications += built.graph.n_layer_applications();
    return built;
}

LatentSteps::PassResult ThoughtSteps::run(const Pass & pass) {
    if (pass.prompts.empty()) {
        for (int stream : pass.streams) {
            const int n_rows = at(stream).n_prompt + 1 + at(stream).t;
            if (pass.finish) {
                // For a step after the answer: end row and answer are not part of it.
                context_.cache().save_checkpoint(stream, n_rows, StateSlot::current);
            } else if (at(stream).n_final > 0) {
                context_.cache().restore_checkpoint(stream, n_rows);
                at(stream).n_final = 0;
            }
        }
    }
    PassResult result;
    Built &    built = compute(pass, method_.prefix(), result.layer_applications);
    if (pass.finish) {
        result.logits = get_rows(built.logits);
    }
    return result;
}

std::vector<StateTensor> ThoughtSteps::read_state(int stream) const {
    std::vector<float> values(size_t(next_->ne[0]));
    get_bytes(next_, size_t(stream) * next_->nb[1], values.data(), values.size() * sizeof(float));
    return { { "R", { 1, next_->ne[0] }, std::move(values) } };
}

std::vector<StateTensor> ThoughtSteps::states(const Prompt & prompt, int n_steps) {
    int applications               = 0;
    at(prompt.stream)              = { int(prompt.tokens.size()), 0, 0, 0 };
    const Built &            built = compute({ { prompt.stream }, { prompt }, n_steps, true }, {}, applications);
    std::vector<StateTensor> states;
    for (Node thought : built.thought_nodes) {
        states.push_back({ "thought_" + std::to_string(states.size() + 1), { thought->ne[0] }, get_node(thought) });
    }
    states.push_back({ "first_logits", { built.logits->ne[0] }, get_node(built.logits) });
    return states;
}

} // namespace penelope
