// One set of weights as student and teacher. Student b: prompt at places 0 .. n-1, begin row at n, thoughts at n+1 .. n+K, end
// row at n+K+1, answer tokens after it; the end row predicts the first of them. Teacher b, on a sequence of its own: prompt,
// trace, answer. Both predict their tokens, and at the row that predicts the first token of the answer proper the student's
// states after every layer are drawn to the teacher's.
#include "graph/ops_distill.h"
#include "train/objective.h"

namespace penelope {

namespace {

// Rows of all sequences through all layers, and the states at one row of each along the way.
struct TappedPass {
    Node              predicting; // [d, n_targets] after the last layer
    std::vector<Node> taps;       // [d, n] after every layer, the last one after the final norm
};

// rows: all of them; kept: those that predict, null: all; tap: the tapped row of each sequence among all rows, kept_tap: among
// the kept.
TappedPass tapped_pass(Graph & g, const Backbone & model, Node x, const Rows & rows, const Queries * kept, Node tap,
                       Node kept_tap, SequenceState & kv) {
    const int  n_layer = model.config.n_layer;
    TappedPass pass;
    for (int il = 0; il + 1 < n_layer; il++) {
        x = run_layers(g, model, il, il + 1, x, rows, kv);
        pass.taps.push_back(gather_rows(g, x, tap));
    }
    pass.predicting = run_layers(g, model, n_layer - 1, n_layer, x, rows, kv, kept);
    pass.taps.push_back(final_norm(g, model, gather_rows(g, pass.predicting, kept_tap)));
    return pass;
}

} // namespace

std::vector<int32_t> CodiObjective::row_tokens(const Minibatch & batch) const {
    std::vector<int32_t> ids = Objective::row_tokens(batch);
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
                                    StepInputs & inputs) const {
    const int                         n = batch.n_examples();
    std::vector<Stretch>              first, starts, student, teacher, teacher_kept;
    std::vector<std::vector<Stretch>> thoughts{ size_t(batch.n_steps) };
    std::vector<int32_t>              student_tap, teacher_index, teacher_tap, teacher_kept_tap;
    int                               n_prompt_rows = 0, n_student = 0, n_teacher = 0, n_teacher_kept = 0;
    for (int b = 0; b < n; b++) {
        const TokenizedExample & example  = batch.examples[size_t(b)];
        const int                n_prompt = int(example.prompt.size()), n_target = int(example.target.size());
        const int                n_trace = int(example.trace.size());
        first.push_back(stretch(b, 0, n_prompt));
        starts.push_back(stretch(b, n_prompt, 1));
        for (int t = 1; t <= batch.n_steps; t++) {
            thoughts[size_t(t - 1)].push_back(stretch(b, n_prompt + t, 1));
        }
        student.push_back(stretch(b, n_prompt + batch.n_steps + 1, n_target));
        // The row of target token j comes j + 1 rows after the one that predicts the first.
        student_tap.push_back(n_student + example.tap + 1);

        const int n_rows = n_prompt + n_trace + n_target - 1;
        teacher.push_back(stretch(n + b, 0, n_rows));
        teacher_kept.push_back(stretch(n + b, n_prompt - 1, n_trace + n_target));
        for (int i = 0; i < n_trace + n_target; i++) {
            teacher_index.push_back(n_teacher + n_prompt - 1 + i);
        }
        teacher_tap.push_back(n_teacher + n_prompt + n_trace + example.tap);
        teacher_kept_tap.push_back(n_teacher_kept + n_trace + example.tap + 1);
        n_prompt_rows += n_prompt;
        n_student += n_target;
        n_teacher += n_rows;
        n_teacher_kept += n_trace + n_target;
    }
    first.insert(first.end(), starts.begin(), starts.end());
    RowInputs &       first_rows = inputs.rows(g, "first", first);
    const Rows        start_rows = first_rows.part(g, n, n);
    std::vector<Rows> thought_rows;
    for (const std::vector<Stretch> & stretches : thoughts) {
        thought_rows.push_back(inputs.rows(g, "thought", stretches).rows());
    }
    Queries starting;
    starting.first     = n_prompt_rows;
    starting.count     = n;
    starting.positions = start_rows.positions;
    starting.segments  = start_rows.segments;
    thought_passes(g, model, modules_, slice_rows(g, tokens, 0, n_prompt_rows), n, first_rows.rows(), starting,
                   thought_rows, inputs.kv());

    // [end; targets without their last] of every student
    Node              end = slice_rows(g, modules_.token_rows, 1, 1);
    std::vector<Node> parts;
    int64_t           next = n_prompt_rows;
    for (const TokenizedExample & example : batch.examples) {
        const int64_t count = int64_t(example.target.size()) - 1;
        parts.push_back(end);
        if (count > 0) {
            parts.push_back(slice_rows(g, tokens, next, count));
        }
        next += count;
    }
    Node             tap     = inputs.index(g, "student.tap", student_tap);
    const TappedPass learned = tapped_pass(g, model, concat_rows(g, parts), inputs.rows(g, "student", student).rows(),
                                           nullptr, tap, tap, inputs.kv());

    if (!batch.has_teacher) {
        return { learned.predicting };
    }

    const Rows & predicting_rows = inputs.rows(g, "teacher.kept", teacher_kept).rows();
    Queries      predicting;
    predicting.index     = inputs.index(g, "teacher.index", teacher_index);
    predicting.positions = predicting_rows.positions;
    predicting.segments  = predicting_rows.segments;
    const TappedPass taught =
        tapped_pass(g, model, slice_rows(g, tokens, next, n_teacher), inputs.rows(g, "teacher", teacher).rows(),
                    &predicting, inputs.index(g, "teacher.tap", teacher_tap),
                    inputs.index(g, "teacher.kept.tap", teacher_kept_tap), inputs.kv());

    // The embeddings at the tap are those of the same token: a distance of zero that counts in the mean.
    Node distance = nullptr;
    for (size_t i = 0; i < taught.taps.size(); i++) {
        Node one = distillation(g, learned.taps[i], taught.taps[i]);
        distance = distance ? add(g, distance, one) : one;
    }
    distance = scale(g, distance, 1.0f / float(taught.taps.size() + 1));
    return { concat_rows(g, { learned.predicting, taught.predicting }), distance };
}

int CodiObjective::n_layer_applications(const Backbone & model, int n_steps) const {
    return (n_steps + 3) * model.config.n_layer;
}

} // namespace penelope
