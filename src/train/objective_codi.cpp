// CODI: the same weights as student and teacher. The student is a sequence as in thought_rows.h. The teacher is a
// second sequence: prompt, trace, target. Both predict their tokens. At the row that predicts the first answer token,
// the distillation loss compares the states of student and teacher after every layer.
#include "graph/ops_distill.h"
#include "train/objective.h"
#include "train/thought_rows.h"

namespace penelope {

namespace {

// A forward pass that also returns the hidden states at one row (the tap) of each sequence after every layer.
struct TappedPass {
    Node              predicting; // [d, n_targets] after the last layer
    std::vector<Node> taps;       // [d, n] after every layer, the last one after the final norm
};

// output_rows: the rows that predict, null: all. tap: index of the tapped row of each sequence among all rows;
// output_tap: among the output rows.
TappedPass tapped_pass(Graph & g, const Backbone & model, Node x, const RowLayout & rows,
                       const OutputRows * output_rows, Node tap, Node output_tap, SequenceState & kv) {
    const int  n_layer = model.config.n_layer;
    TappedPass pass;
    for (int il = 0; il + 1 < n_layer; il++) {
        x = run_layers(g, model, il, il + 1, x, rows, kv);
        pass.taps.push_back(gather_rows(g, x, tap));
    }
    pass.predicting = run_layers(g, model, n_layer - 1, n_layer, x, rows, kv, output_rows);
    pass.taps.push_back(final_norm(g, model, gather_rows(g, pass.predicting, output_tap)));
    return pass;
}

// Standard deviation of the teacher's states in every layer over the whole minibatch. Ranks that have a shard each
// all-gather their moments in a host callback before the distillation loss is computed.
std::vector<Node> teacher_stddevs(Graph & g, const std::vector<Node> & taps, BatchInputs & inputs) {
    std::vector<Node> stddevs;
    if (!inputs.gather()) {
        for (Node tap : taps) {
            stddevs.push_back(standard_deviation(g, tap));
        }
        return stddevs;
    }
    Node own = nullptr; // [2 * n_layer]
    for (Node tap : taps) {
        own = own ? ggml_concat(g.ctx(), own, moments(g, tap), 0) : moments(g, tap);
    }
    const size_t n   = taps.size();
    Node         all = inputs.matrix(g, "spreads", int64_t(n), 1, std::vector<float>(n, 1.0f));
    g.host_callback(
        own, all, [n, gather = inputs.gather(), n_own = float(ggml_nelements(taps.front()))](std::vector<float> mine) {
            mine.push_back(n_own);
            const std::vector<std::vector<float>> gathered = gather(mine);
            std::vector<float>                    found;
            for (size_t i = 0; i < n; i++) {
                std::vector<Moments> parts;
                for (const std::vector<float> & one : gathered) {
                    parts.push_back({ one.at(2 * n), one.at(2 * i), one.at(2 * i + 1) });
                }
                found.push_back(float(standard_deviation(parts)));
            }
            return found;
        });
    for (size_t i = 0; i < n; i++) {
        stddevs.push_back(ggml_view_1d(g.ctx(), all, 1, i * sizeof(float)));
    }
    return stddevs;
}

} // namespace

std::vector<int32_t> CodiObjective::input_tokens(const Minibatch & batch) const {
    std::vector<int32_t> ids = Objective::input_tokens(batch);
    if (!batch.has_teacher) {
        return ids;
    }
    for (const TokenizedExample & example : batch.examples) {
        ids.insert(ids.end(), example.prompt.begin(), example.prompt.end());
        ids.insert(ids.end(), example.trace.begin(), example.trace.end());
        ids.insert(ids.end(), example.target.begin(), example.target.end() - 1);
    }
    return ids;
}

BuiltObjective CodiObjective::build(Graph & g, const Backbone & model, const Minibatch & batch, Node tokens,
                                    BatchInputs & inputs) const {
    const int             n = batch.n_examples();
    std::vector<SeqRange> teacher, teacher_outputs;
    std::vector<int32_t>  student_tap, teacher_index, teacher_tap, teacher_output_tap;
    int                   n_student = 0, n_teacher = 0, n_teacher_outputs = 0;
    for (int b = 0; b < n; b++) {
        const TokenizedExample & example  = batch.examples[size_t(b)];
        const int                n_prompt = int(example.prompt.size()), n_target = int(example.target.size());
        const int                n_trace = int(example.trace.size());
        // The row of target token j comes j + 1 rows after the one that predicts the first.
        student_tap.push_back(n_student + example.distill_position + 1);

        const int n_rows = n_prompt + n_trace + n_target - 1;
        teacher.push_back({ n + b, 0, n_rows });
        teacher_outputs.push_back({ n + b, n_prompt - 1, n_trace + n_target });
        for (int i = 0; i < n_trace + n_target; i++) {
            teacher_index.push_back(n_teacher + n_prompt - 1 + i);
        }
        teacher_tap.push_back(n_teacher + n_prompt + n_trace + example.distill_position);
        teacher_output_tap.push_back(n_teacher_outputs + n_trace + example.distill_position + 1);
        n_student += n_target;
        n_teacher += n_rows;
        n_teacher_outputs += n_trace + n_target;
    }
    const ThoughtRows student = build_thought_rows(g, model, modules_, batch, tokens, inputs);
    Node              tap     = inputs.index(g, "student.tap", student_tap);
    const TappedPass  learned = tapped_pass(
         g, model, student.input, inputs.rows(g, "student", student.predicting).rows(), nullptr, tap, tap, inputs.kv());

    if (!batch.has_teacher) {
        return { learned.predicting };
    }

    const RowLayout & predicting_rows = inputs.rows(g, "teacher.kept", teacher_outputs).rows();
    OutputRows        predicting;
    predicting.index     = inputs.index(g, "teacher.index", teacher_index);
    predicting.positions = predicting_rows.positions;
    predicting.segments  = predicting_rows.segments;
    const TappedPass taught =
        tapped_pass(g, model, slice_rows(g, tokens, student.n_tokens, n_teacher),
                    inputs.rows(g, "teacher", teacher).rows(), &predicting, inputs.index(g, "teacher.tap", teacher_tap),
                    inputs.index(g, "teacher.kept.tap", teacher_output_tap), inputs.kv());

    const std::vector<Node> stddevs = teacher_stddevs(g, taught.taps, inputs);
    // The reference also counts the embedding layer. Both embeddings at the tap are of the same token, so its loss is
    // 0.
    Node distance = nullptr;
    for (size_t i = 0; i < taught.taps.size(); i++) {
        Node one = distillation(g, learned.taps[i], taught.taps[i], stddevs[i]);
        distance = distance ? add(g, distance, one) : one;
    }
    distance = scale(g, distance, 1.0f / float(taught.taps.size() + 1));
    return { concat_rows(g, { learned.predicting, taught.predicting }), distance };
}

int CodiObjective::n_layer_applications(const Backbone & model, int n_steps) const {
    return (n_steps + 3) * model.config.n_layer;
}

} // namespace penelope
