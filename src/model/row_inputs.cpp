#include "model/row_inputs.h"

#include <cmath>

namespace penelope {

RowInputs::RowInputs(Graph & g, const std::string & name, const std::vector<Stretch> & stretches, bool exact)
    : graph_(g), name_(name) {
    for (const Stretch & s : stretches) {
        const std::string number        = std::to_string(rows_.segments.size());
        const bool        hides_nothing = exact && s.count == 1 && s.n_kv == s.row + 1;
        Node mask = hides_nothing ? nullptr : g.input(name + ".mask." + number, GGML_TYPE_F16, s.n_kv, s.count);
        rows_.segments.push_back(
            { n_rows_, s.count, s.stream, s.row, s.n_kv, mask, s.from, s.to,
              s.n_real < s.count ? g.input(name + ".n_real." + number, GGML_TYPE_F32, 1) : nullptr });
        n_rows_ += s.count;
    }
    rows_.positions  = g.input(name + ".positions", GGML_TYPE_I32, n_rows_);
    rows_.cache_rows = g.input(name + ".cache_rows", GGML_TYPE_I64, n_rows_);
}

Rows RowInputs::part(Graph & g, int first, int count) {
    Rows      part;
    const int start = rows_.segments[size_t(first)].first;
    int       n     = 0;
    for (int i = first; i < first + count; i++) {
        Segment segment = rows_.segments[size_t(i)];
        segment.first -= start;
        n += segment.count;
        part.segments.push_back(segment);
    }
    // Not views of the whole: a view may start where a device cannot bind it.
    const std::string name = name_ + ".part." + std::to_string(parts_.size());
    part.positions         = g.input(name + ".positions", GGML_TYPE_I32, n);
    part.cache_rows        = g.input(name + ".cache_rows", GGML_TYPE_I64, n);
    parts_.push_back({ start, part });
    return part;
}

void RowInputs::fill(const std::vector<Stretch> & stretches, const SequenceCache * cache) const {
    const ggml_fp16_t        seen = ggml_fp32_to_fp16(0.0f), hidden = ggml_fp32_to_fp16(-INFINITY);
    std::vector<int32_t>     positions;
    std::vector<int64_t>     cache_rows;
    std::vector<ggml_fp16_t> mask;
    for (size_t i = 0; i < stretches.size(); i++) {
        const Stretch & s = stretches[i];
        for (int r = 0; r < s.count; r++) {
            positions.push_back(s.row + r);
            cache_rows.push_back(!cache         ? 0
                                 : r < s.n_real ? cache->cache_row(s.stream, s.row + r)
                                                : cache->spare_row(s.stream));
        }
        if (Node node = rows_.segments[i].n_real) {
            graph_.set(node, std::vector<float>{ float(s.n_real) });
        }
        if (Node node = rows_.segments[i].mask) {
            mask.assign(size_t(s.n_kv) * size_t(s.count), hidden);
            for (int r = 0; r < s.count; r++) {
                std::fill_n(mask.begin() + ptrdiff_t(r) * s.n_kv, std::min(s.n_kv, s.row + r + 1), seen);
            }
            graph_.set(node, mask);
        }
    }
    const auto set = [&](const Rows & rows, int first) {
        graph_.set(rows.positions, positions.data() + first, ggml_nbytes(rows.positions));
        graph_.set(rows.cache_rows, cache_rows.data() + first, ggml_nbytes(rows.cache_rows));
    };
    set(rows_, 0);
    for (const Part & part : parts_) {
        set(part.rows, part.first);
    }
}

} // namespace penelope
