#include "train/step_inputs.h"

#include "graph/nodes.h"

namespace penelope {

RowInputs & StepInputs::rows(Graph & g, const std::string & name, std::vector<Stretch> stretches) {
    for (Stretch & s : stretches) {
        s.n_kv = int(GGML_PAD(s.n_kv, kProductUnit)); // hidden zeros at the end, so that sums over keys are fast
    }
    rows_.push_back({ std::make_unique<RowInputs>(g, name, stretches, !is_padded_), std::move(stretches) });
    return *rows_.back().inputs;
}

Node StepInputs::index(Graph & g, const std::string & name, std::vector<int32_t> values) {
    const int64_t n = int64_t(values.size());
    return index(g, name, n, [values = std::move(values)](const Minibatch &) { return values; });
}

Node StepInputs::index(Graph & g, const std::string & name, int64_t n, OfBatch<int32_t> values) {
    Node node = g.input(name, GGML_TYPE_I32, n);
    indices_.emplace_back(node, std::move(values));
    return node;
}

Node StepInputs::matrix(Graph & g, const std::string & name, int64_t ne0, int64_t ne1, std::vector<float> values) {
    return matrix(g, name, ne0, ne1, [values = std::move(values)](const Minibatch &) { return values; });
}

Node StepInputs::matrix(Graph & g, const std::string & name, int64_t ne0, int64_t ne1, OfBatch<float> values) {
    Node node = g.input(name, GGML_TYPE_F32, ne0, ne1);
    matrices_.emplace_back(node, std::move(values));
    return node;
}

void StepInputs::fill(Graph & g, const Minibatch & batch) const {
    const std::vector<int> fronts = batch.fronts();
    for (const RowsInput & input : rows_) {
        std::vector<Stretch> stretches = input.stretches;
        for (Stretch & s : stretches) {
            s.n_front = fronts[size_t(s.stream) % fronts.size()];
        }
        input.inputs->fill(stretches, nullptr);
    }
    for (const auto & [node, values] : indices_) {
        g.set(node, values(batch));
    }
    for (const auto & [node, values] : matrices_) {
        g.set(node, values(batch));
    }
}

} // namespace penelope
