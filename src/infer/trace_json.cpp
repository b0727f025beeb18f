#include "infer/trace_json.h"

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
    return object;
}

} // namespace penelope
