#include "arch/row_layout.h"

namespace penelope {

void set_dropout_rows(Graph & g, const std::vector<Segment> & segments) {
    if (!g.tape()) {
        return; // no dropout in inference
    }
    auto spans = std::make_shared<SeqRowsList>();
    for (const Segment & segment : segments) {
        spans->push_back({ segment.first, segment.count, segment.stream, segment.row });
    }
    g.set_seq_rows(std::move(spans));
}

} // namespace penelope
