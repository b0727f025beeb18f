#include "arch/rows.h"

namespace penelope {

void draw_for(Graph & g, const std::vector<Segment> & segments) {
    if (!g.tape()) {
        return; // nothing is drawn
    }
    auto spans = std::make_shared<RowSpans>();
    for (const Segment & segment : segments) {
        spans->push_back({ segment.first, segment.count, segment.stream, segment.row });
    }
    g.set_row_spans(std::move(spans));
}

} // namespace penelope
