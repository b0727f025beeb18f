#include "arch/row_layout.h"

namespace penelope {

void set_dropout_rows(Graph & g, const std::vector<Segment> & segments) {
    if (!g.tape()) {
        return; // no dropout in inference
    }
    g.set_dropout_rows(std::make_shared<std::vector<SeqRange>>(segments.begin(), segments.end()));
}

} // namespace penelope
