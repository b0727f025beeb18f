#include "train/batch_inputs.h"

#include "graph/nodes.h"

namespace penelope {

RowInputs & BatchInputs::rows(Graph & g, const std::string & name, std::vector<SeqRange> ranges) {
    for (SeqRange & s : ranges) {
        s.n_kv = int(GGML_PAD(s.n_kv, kProductUnit)); // hidden zeros at the end, so that sums over keys are fast
    }
    rows_.push_back({ std::make_unique<RowInputs>(g, name, config_, ranges, !is_padded_), std::move(ranges) });
    return *rows_.back().inputs;
}

Node BatchInputs::index(Graph & g, const std::string & name, std::vector<int32_t> values) {
    const int64_t n = int64_t(values.size());
    return index(g, name, n, [values = std::move(values)](const Minibatch &) { return values; });
}

Node BatchInputs::index(Graph & g, const std::string & name, int64_t n, OfBatch<int32_t> values) {
    Node node = g.input(name, GGML_TYPE_I32, n);
    indices_.emplace_back(node, std::move(values));
    return node;
}

Node BatchInputs::matrix(Graph & g, const std::string & name, int64_t ne0, int64_t ne1, std::vector<float> values) {
    return matrix(g, name, ne0, ne1, [values = std::move(values)](const Minibatch &) { return values; });
}

Node BatchInputs::matrix(Graph & g, const std::string & name, int64_t ne0, int64_t ne1, OfBatch<float> values) {
    Node node = g.input(name, GGML_TYPE_F32, ne0, ne1);
    matrices_.emplace_back(node, std::move(values));
    return node;
}

void BatchInputs::fill(Graph & g, const Minibatch & batch) const {
    const std::vector<int> left_padding = batch.left_padding();
    for (const RowsInput & input : rows_) {
        std::vector<SeqRange> ranges = input.ranges;
        for (SeqRange & s : ranges) {
            s.n_left_pad = left_padding[size_t(s.stream) % left_padding.size()];
        }
        input.inputs->fill(ranges, nullptr);
    }
    for (const auto & [node, values] : indices_) {
        g.set(node, values(batch));
    }
    for (const auto & [node, values] : matrices_) {
        g.set(node, values(batch));
    }
}

} // namespace penelope
