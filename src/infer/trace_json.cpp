#include "infer/trace_json.h"

#include <cmath>

namespace penelope {

namespace {

OrderedJson scores_json(const std::vector<std::vector<TokenScore>> & rows) {
    OrderedJson out = OrderedJson::array();
    for (const std::vector<TokenScore> & row : rows) {
        OrderedJson list = OrderedJson::array();
        for (const TokenScore & score : row) {
            list.push_back({ { "token", score.token }, { "text", score.text }, { "logit", score.logit } });
        }
        out.push_back(std::move(list));
    }
    return out;
}

OrderedJson attention_json(const LayerAttention & layer) {
    OrderedJson  heads = OrderedJson::array();
    const auto * next  = layer.weights.data();
    for (int head = 0; head < layer.n_heads; head++) {
        OrderedJson rows = OrderedJson::array();
        for (int row = 0; row < layer.n_rows; row++, next += layer.n_positions) {
            OrderedJson positions = OrderedJson::array();
            for (int i = 0; i < layer.n_positions; i++) {
                positions.push_back(std::round(double(next[i]) * 1e4) / 1e4);
            }
            rows.push_back(std::move(positions));
        }
        heads.push_back(std::move(rows));
    }
    return { { "layer", layer.layer }, { "heads", std::move(heads) } };
}

} // namespace

OrderedJson trace_json(const TraceStep & step) {
    OrderedJson object = { { "t", step.t },
                           { "alpha", step.t == 0 ? OrderedJson(nullptr) : OrderedJson(step.alpha) },
                           { "memory",
                             { { "norm", step.memory_norms },
                               { "cosine", step.memory_cosines },
                               { "top", scores_json(step.memory_top) } } },
                           { "readout",
                             { { "norm", step.readout_norms },
                               { "cosine", step.readout_cosines },
                               { "top", scores_json(step.readout_top) } } } };
    if (!step.features_top.empty()) {
        object["features"] = { { "top", scores_json(step.features_top) } };
    }
    object["layer_applications"] = step.layer_applications;
    for (const LayerAttention & layer : step.attention) {
        object["attention"].push_back(attention_json(layer));
    }
    return object;
}

} // namespace penelope
